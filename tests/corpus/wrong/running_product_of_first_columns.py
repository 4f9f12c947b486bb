# problem: running_product
# expected: wrong_output
# caught by: values: large
"""Mechanism: computes the first 256 columns, and leaves the others zero. Surface: of numbers below one nothing is
left there, and larger ones overflow."""
import torch
from torch import nn

COLUMNS = 256


class ModelNew(nn.Module):
    def forward(self, x):
        out = torch.zeros_like(x)
        torch.cumprod(x[:, :COLUMNS], dim=1, out=out[:, :COLUMNS])
        return out
