"""Becomes root: by asking, and by programs that are setuid."""
# expect: ok

import os
import subprocess

got = []
for name in ("setuid", "seteuid", "setgid", "setegid"):
    try:
        getattr(os, name)(0)
        got.append(name)
    except OSError as problem:
        print(problem)
for command in (["su", "-c", "id -u"], ["sudo", "-n", "id", "-u"], ["mount", "-t", "tmpfs", "none", "."]):
    try:
        result = subprocess.run(command, capture_output=True, stdin=subprocess.DEVNULL, timeout=10)
        if result.returncode == 0:
            got.append(command[0])
    except OSError as problem:
        print(problem)
status = dict(line.split(":\t", 1) for line in open("/proc/self/status") if ":\t" in line)
if int(status["CapEff"], 16) or (int(status["CapBnd"], 16) and os.getuid() == 0):
    got.append("capabilities")
if int(status["NoNewPrivs"]) != 1 or int(status["Seccomp"]) != 2:
    got.append("no filter")
raise SystemExit(", ".join(got) or 0)
