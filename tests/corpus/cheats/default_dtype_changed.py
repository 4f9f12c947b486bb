# problem: level1/2
# expected: wrong_output
# caught by: values: drawn
"""Mechanism: makes float16 the default dtype, in which a reference beside it would draw its inputs too.

Surface: defaults of the process.
"""
import torch
from torch import nn

torch.set_default_dtype(torch.float16)


class ModelNew(nn.Module):
    def forward(self, x):
        return torch.softmax(x.to(torch.get_default_dtype()), dim=-1).to(x.dtype)
