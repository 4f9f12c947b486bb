"""Takes memory in memory files that no process maps, so that no resident set shows it."""
# expect: memory
# limits: memory_bytes=100000000 wall_s=20

import os
import time

files = [os.memfd_create(str(number)) for number in range(20)]
for file in files:
    os.write(file, b"x" * 10_000_000)
    time.sleep(0.02)
time.sleep(1000)
