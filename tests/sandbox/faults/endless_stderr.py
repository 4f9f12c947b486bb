"""Writes to stderr for ever, in large pieces."""
# expect: output
# limits: output_bytes=10000

import os

while True:
    os.write(2, b"x" * 100_000)
