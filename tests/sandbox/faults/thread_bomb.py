"""Counts how many threads it may start."""
# expect: ok
# limits: processes=24

import os
import threading

never = threading.Event()
started = 0
try:
    while started < 300:
        threading.Thread(target=never.wait, daemon=True).start()
        started += 1
except RuntimeError:
    pass
os._exit(started > 24)
