"""Takes memory by files in /tmp and /dev/shm, and wherever else a memory file system may be writable."""
# expect: ok
# limits: scratch_bytes=20000000

import os

for directory in ("/tmp", "/dev/shm", "/dev", "/run", "/", "/var/tmp"):
    try:
        with open(os.path.join(directory, "bomb"), "wb", buffering=0) as file:
            for _ in range(6):
                if file.write(b"x" * 5_000_000) < 5_000_000:
                    break
            else:
                print("30 MB fit into", directory)
                raise SystemExit(1)
    except OSError as problem:
        print(directory, problem)
