"""Makes itself unreadable for the watchdog of its own user, and changes another process's limits."""
# expect: ok

import ctypes
import os
import resource

PR_SET_DUMPABLE = 4
got = []
if ctypes.CDLL(None).prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) == 0:
    got.append("undumpable")
for pid in (int(os.environ["FAULT_HARNESS"]), os.getppid()):
    try:
        resource.prlimit(pid, resource.RLIMIT_CPU, (100000, 100000))
        got.append(f"prlimit {pid}")
    except OSError as problem:
        print(problem)
raise SystemExit(", ".join(got) or 0)
