"""Reads the database, another attempt's scratch directory and files every user may read."""
# expect: ok

import os

database, neighbour = os.environ["FAULT_DATABASE"], os.environ["FAULT_NEIGHBOUR"]
paths = [
    database,
    neighbour + "/answer",
    "/etc/passwd",
    f"/proc/{os.environ['FAULT_HARNESS']}/root{database}",
]
os.symlink(database, "link")
paths += ["link", f"/proc/1/root{database}", f"/proc/1/cwd/..{database}"]
got = []
for path in paths:
    try:
        open(path).read()
        got.append(path)
    except OSError as problem:
        print(problem)
for directory in ("/root", "/home", neighbour, os.path.dirname(database)):
    try:
        if set(os.listdir(directory)) & {"answer", "database"}:
            got.append(directory)
    except OSError as problem:
        print(problem)
raise SystemExit(", ".join(got) or 0)
