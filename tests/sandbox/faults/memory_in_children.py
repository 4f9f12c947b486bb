"""Takes memory in several processes, each far below the limit."""
# expect: memory
# limits: memory_bytes=150000000 wall_s=20

import os
import time

for _ in range(5):
    if os.fork() == 0:
        break
held = b"x" * 40_000_000
time.sleep(1000)
