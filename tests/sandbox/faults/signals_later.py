"""Asks the kernel for SIGCONT at a later time, in every way there is: a stopped job would go on by itself.

What harmless programs use must work meanwhile: an interval timer, an alarm, a timer that is read, a signal
for a descriptor that is ready, SIGKILL at the end of a parent.
"""
# expect: ok
# stdout: refused: timer, clock of the processor, queue, descriptor, end of a child, end of a parent

import ctypes
import fcntl
import os
import platform
import signal
import struct

libc = ctypes.CDLL(None, use_errno=True)
calls = {"x86_64": (222, 244, 56), "aarch64": (107, 184, 220)}[platform.machine()]
timer_create, mq_notify, clone = calls
by_signal = ctypes.create_string_buffer(struct.pack("<qiiq40x", 0, signal.SIGCONT, 0, 0))
number = ctypes.c_int()
readable, writable = os.pipe()
F_SETSIG, PR_SET_PDEATHSIG, CLOCK_MONOTONIC, CLOCK_PROCESS_CPUTIME = 10, 1, 1, 2


def set_signal():
    try:
        fcntl.fcntl(readable, F_SETSIG, signal.SIGCONT)
    except PermissionError:
        return -1
    return 0


def end_of_a_child():
    pid = libc.syscall(clone, ctypes.c_ulong(signal.SIGCONT), 0, 0, 0, 0)
    if pid == 0:
        os._exit(0)
    return pid


ways = {
    "timer": lambda: libc.syscall(timer_create, CLOCK_MONOTONIC, by_signal, ctypes.byref(number)),
    "clock of the processor": lambda: libc.syscall(
        timer_create, CLOCK_PROCESS_CPUTIME, by_signal, ctypes.byref(number)
    ),
    "queue": lambda: libc.syscall(mq_notify, 0, by_signal),
    "descriptor": set_signal,
    "end of a child": end_of_a_child,
    "end of a parent": lambda: libc.prctl(PR_SET_PDEATHSIG, signal.SIGCONT, 0, 0, 0),
}
refused = [name for name, way in ways.items() if way() == -1]

rung = []
signal.signal(signal.SIGALRM, lambda *_: rung.append("alarm"))
signal.signal(signal.SIGIO, lambda *_: rung.append("io"))
signal.setitimer(signal.ITIMER_REAL, 0.01)
while "alarm" not in rung:
    pass
signal.alarm(1)
signal.alarm(0)
fcntl.fcntl(readable, fcntl.F_SETOWN, os.getpid())
fcntl.fcntl(readable, fcntl.F_SETFL, os.O_ASYNC)
os.write(writable, b"x")
while "io" not in rung:
    pass
timer = libc.timerfd_create(CLOCK_MONOTONIC, 0)
assert timer >= 0
assert libc.timerfd_settime(timer, 0, struct.pack("<qqqq", 0, 0, 0, 1000), None) == 0
assert struct.unpack("<Q", os.read(timer, 8))[0] >= 1
assert libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0) == 0
print("refused:", ", ".join(refused))
