"""Burns processor time in children that nobody waits for, each too short-lived for a limit of its own."""
# expect: cpu
# limits: cpu_s=1 wall_s=60

import os
import signal
import time

signal.signal(signal.SIGCHLD, signal.SIG_IGN)
while True:
    if os.fork() == 0:
        end = time.process_time() + 0.7
        while time.process_time() < end:
            pass
        os._exit(0)
    time.sleep(0.3)
