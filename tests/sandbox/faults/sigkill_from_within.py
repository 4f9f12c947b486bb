"""Tries to end by SIGKILL, so that the end would look like one that somebody outside had caused."""
# expect: ok

import contextlib
import os
import resource
import signal

child = os.fork()
if child == 0:
    signal.pause()
got = []
for name, attempt in {
    "kill": lambda: os.kill(os.getpid(), signal.SIGKILL),
    "kill of a sibling": lambda: os.kill(child, signal.SIGKILL),
    "pidfd_send_signal": lambda: signal.pidfd_send_signal(os.pidfd_open(child), signal.SIGKILL),
    "setrlimit": lambda: resource.setrlimit(resource.RLIMIT_CPU, (1, 1)),
}.items():
    with contextlib.suppress(PermissionError, ValueError):
        attempt()
        got.append(name)
if os.waitpid(child, os.WNOHANG) != (0, 0):
    got.append("the sibling has ended")
looks_killed = os.fork()
if looks_killed == 0:
    os._exit(128 + signal.SIGKILL)
if os.waitstatus_to_exitcode(os.waitpid(looks_killed, 0)[1]) != -signal.SIGSYS:
    got.append("exit code 137")
raise SystemExit(", ".join(got) or 0)
