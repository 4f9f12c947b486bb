"""Opens what the harness holds open, through /proc/PID/fd and pidfd_getfd."""
# expect: ok

import ctypes
import os

PIDFD_GETFD = 438
libc = ctypes.CDLL(None, use_errno=True)
harness = int(os.environ["FAULT_HARNESS"])
got = []
for number in range(20):
    try:
        os.close(os.open(f"/proc/{harness}/fd/{number}", os.O_RDONLY))
        got.append(f"open {number}")
    except OSError as problem:
        print(problem)
try:
    pidfd = os.pidfd_open(harness)
    got += [f"get {number}" for number in range(20) if libc.syscall(PIDFD_GETFD, pidfd, number, 0) >= 0]
except OSError as problem:
    print(problem)
raise SystemExit(", ".join(got) or 0)
