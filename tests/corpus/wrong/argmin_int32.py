# problem: level1/5
# expected: wrong_dtype
# caught by: output_form
"""Mechanism: int32 where int64 is due. Surface: the values are equal."""
import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.dim = dim

    def forward(self, x):
        return x.argmin(self.dim).to(torch.int32)
