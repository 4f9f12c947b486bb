# problem: level1/1
# expected: load_error
"""Mechanism: a name that only the constructor needs is missing. Surface: errors after a clean import."""
from torch import nn


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.kernel = extension.kernel
