# problem: running_product
# expected: correct
# settings: {"measure": false}
"""Mechanism: multiplies by what stands 1, 2, 4, ... places before. Surface: another order of products, on values
whose product neither vanishes nor overflows."""
from torch import nn


class ModelNew(nn.Module):
    def forward(self, x):
        step = 1
        while step < x.shape[1]:
            shifted = x.clone()
            shifted[:, step:] *= x[:, :-step]
            x, step = shifted, 2 * step
        return x
