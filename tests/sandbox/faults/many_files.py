"""Fills the disk with many files, each within its limit."""
# expect: output
# limits: file_bytes=1000000 scratch_bytes=10000000 wall_s=20

import time

for number in range(40):
    with open(f"file{number}", "wb") as file:
        file.write(b"x" * 500_000)
time.sleep(1000)
