# problem: level1/1
# expected: timeout
# settings: {"load_seconds": 5}
"""Mechanism: sleeps for ever while imported. Surface: the time limit of loading."""
import time

while True:
    time.sleep(1)
