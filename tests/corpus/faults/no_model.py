# problem: level1/1
# expected: load_error
"""Mechanism: defines no ModelNew. Surface: the runner's look-up."""
answer = 42
