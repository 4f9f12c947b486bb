"""Every process forks for ever; all of them stay."""
# expect: timeout
# limits: wall_s=0.6 processes=24

import contextlib
import os
import time

while True:
    with contextlib.suppress(OSError):
        os.fork()
    time.sleep(0.01)
