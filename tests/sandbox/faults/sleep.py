"""Never ends, and does nothing."""
# expect: timeout
# limits: wall_s=0.4

import time

time.sleep(1000)
