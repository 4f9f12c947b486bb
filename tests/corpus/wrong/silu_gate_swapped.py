# problem: level2/10
# expected: wrong_output
# caught by: values: drawn
"""Mechanism: the wrong operand goes through SiLU. Surface: both have the same shape and distribution."""
from torch import nn


class ModelNew(nn.Module):
    def forward(self, gate, up):
        return nn.functional.silu(up) * gate
