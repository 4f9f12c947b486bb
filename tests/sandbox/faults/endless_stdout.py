"""Writes to stdout for ever."""
# expect: output
# limits: output_bytes=10000

while True:
    print("x" * 1000)
