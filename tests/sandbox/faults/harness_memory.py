"""Reads and traces the harness and its own ancestors: /proc/PID/mem, process_vm_readv, ptrace."""
# expect: ok

import ctypes
import os

PTRACE_ATTACH = 16
libc = ctypes.CDLL(None, use_errno=True)
buffer = ctypes.create_string_buffer(64)
local = (ctypes.c_void_p * 2)(ctypes.addressof(buffer), 64)
remote = (ctypes.c_void_p * 2)(ctypes.addressof(buffer), 64)
got = []
pids = {int(os.environ["FAULT_HARNESS"]), os.getppid(), 1} - {os.getpid(), 0}
if os.getppid() == 1 and os.stat("/proc/1").st_uid == os.getuid():
    # The first process of our own pid namespace under our own user: confined as we are, it holds nothing.
    pids.remove(1)
for pid in pids:
    for name in ("mem", "maps"):
        try:
            with open(f"/proc/{pid}/{name}", "rb") as file:
                if name == "mem" or file.read(1):
                    got.append(f"{pid} {name}")
        except OSError as problem:
            print(problem)
    if libc.process_vm_readv(pid, local, 1, remote, 1, 0) >= 0:
        got.append(f"{pid} process_vm_readv")
    if libc.ptrace(PTRACE_ATTACH, pid, 0, 0) >= 0:
        got.append(f"{pid} ptrace")
raise SystemExit(", ".join(got) or 0)
