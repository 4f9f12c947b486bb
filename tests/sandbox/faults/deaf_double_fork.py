"""Ignores every signal it can, leaves its session and forks twice, so that no parent knows the last one."""
# expect: timeout
# limits: wall_s=0.4

import contextlib
import os
import signal
import time

for number in signal.valid_signals():
    with contextlib.suppress(OSError, ValueError):
        signal.signal(number, signal.SIG_IGN)
if os.fork() == 0:
    os.setsid()
    if os.fork():
        os._exit(0)
time.sleep(1000)
