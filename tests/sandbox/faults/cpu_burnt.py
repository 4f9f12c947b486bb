"""Burns processor time in one process."""
# expect: cpu
# limits: cpu_s=1 wall_s=60

while True:
    pass
