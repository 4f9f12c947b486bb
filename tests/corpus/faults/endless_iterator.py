# problem: level1/1
# expected: runtime_error|wrong_shape|out_of_memory
# settings: {"call_seconds": 20, "memory_bytes": 3000000000}
"""Mechanism: returns a list that holds itself. Surface: what walks over outputs."""
from torch import nn


class ModelNew(nn.Module):
    def forward(self, x):
        value = [x]
        value.append(value)
        return value
