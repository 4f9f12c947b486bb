# problem: level1/1
# expected: wrong_output
# caught by: values: large|values: mixed rows
"""Mechanism: clamps at 8 from above. Surface: no normal draw is that large."""
from torch import nn


class ModelNew(nn.Module):
    def forward(self, x):
        return x.clamp(0, 8)
