# problem: level1/1
# expected: crash
"""Mechanism: os._exit(0) while imported. Surface: a harness that takes exit code 0 for success."""
import os

os._exit(0)
