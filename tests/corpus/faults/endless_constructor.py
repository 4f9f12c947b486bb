# problem: level1/1
# expected: timeout
# settings: {"load_seconds": 5}
"""Mechanism: never comes back from __init__. Surface: the time limit of loading."""
from torch import nn


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        while True:
            pass
