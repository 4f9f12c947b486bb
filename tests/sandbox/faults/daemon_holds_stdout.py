"""Ends at once but leaves a daemon that keeps stdout open: waiting for end-of-file would hang."""
# expect: ok
# stdout: started
# limits: wall_s=20

import os
import time

print("started", flush=True)
if os.fork() == 0:
    os.setsid()
    if os.fork():
        os._exit(0)
    time.sleep(1000)
