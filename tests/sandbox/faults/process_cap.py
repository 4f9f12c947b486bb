"""Counts how many processes it may have at once."""
# expect: ok
# limits: processes=24

import os
import signal

children = []
try:
    while len(children) < 300:
        pid = os.fork()
        if pid == 0:
            signal.pause()
        children.append(pid)
except BlockingIOError:
    pass
print(len(children))
raise SystemExit(len(children) > 24)
