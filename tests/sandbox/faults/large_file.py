"""Writes one large file into its scratch directory, and one large memory file."""
# expect: ok
# limits: file_bytes=1000000

import os
import signal

signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
for file in (os.open("large", os.O_CREAT | os.O_WRONLY), os.memfd_create("large")):
    written = 0
    try:
        while written < 5_000_000:
            written += os.write(file, b"x" * 300_000)
    except OSError as problem:
        print(problem)
    if written > 1_000_000:
        raise SystemExit(f"{written} bytes in one file")
