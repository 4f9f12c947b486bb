"""Makes new namespaces and mounts, joins its ancestors' namespaces, changes its root."""
# expect: ok

import ctypes
import os

CLONE_NEWUSER, CLONE_NEWNS, CLONE_NEWNET, SIGCHLD = 0x10000000, 0x20000, 0x40000000, 17
libc = ctypes.CDLL(None, use_errno=True)
got = [hex(flag) for flag in (CLONE_NEWUSER, CLONE_NEWNS, CLONE_NEWNET) if libc.unshare(flag) == 0]
os.mkdir("mounted")
for filesystem in (b"tmpfs", b"proc"):
    if libc.mount(b"none", b"mounted", filesystem, 0, None) == 0:
        got.append(f"mount {filesystem.decode()}")
if os.uname().machine == "x86_64":
    pid = libc.syscall(56, CLONE_NEWUSER | SIGCHLD, 0, 0, 0, 0)
    if pid == 0:
        os._exit(0)
    if pid > 0:
        got.append("clone")
for pid in (1, os.getppid()):
    for name in ("user", "mnt", "net", "pid"):
        try:
            if libc.setns(os.open(f"/proc/{pid}/ns/{name}", os.O_RDONLY), 0) == 0:
                got.append(f"setns {name}")
        except OSError as problem:
            print(problem)
if libc.chroot(b".") == 0:
    got.append("chroot")
raise SystemExit(", ".join(got) or 0)
