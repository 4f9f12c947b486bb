"""Asks for memory that no watchdog sees and no kill frees: System V segments, queues, secret memory."""
# expect: ok

import ctypes

libc = ctypes.CDLL(None, use_errno=True)
IPC_CREAT, IPC_PRIVATE, MEMFD_SECRET = 0o1000, 0, 447
got = {
    "shmget": libc.shmget(IPC_PRIVATE, 4096, IPC_CREAT | 0o600),
    "semget": libc.semget(IPC_PRIVATE, 1, IPC_CREAT | 0o600),
    "msgget": libc.msgget(IPC_PRIVATE, IPC_CREAT | 0o600),
    "memfd_secret": libc.syscall(MEMFD_SECRET, 0),
}
print(got)
raise SystemExit(any(answer >= 0 for answer in got.values()))
