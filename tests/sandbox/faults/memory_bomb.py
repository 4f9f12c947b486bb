"""Takes memory piece by piece and uses it."""
# expect: memory
# limits: memory_bytes=100000000 wall_s=20

import time

held = []
while True:
    held.append(b"x" * 10_000_000)
    time.sleep(0.02)
