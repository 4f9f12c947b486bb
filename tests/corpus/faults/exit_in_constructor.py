# problem: level1/1
# expected: crash
"""Mechanism: os._exit(0) in __init__. Surface: exit code 0."""
import os

from torch import nn


class ModelNew(nn.Module):
    def __init__(self):
        os._exit(0)
