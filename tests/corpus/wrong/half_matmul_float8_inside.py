# problem: level1/21
# expected: wrong_output
# caught by: values: drawn
"""Mechanism: operands rounded to eight bits. Surface: bfloat16 in, bfloat16 out, and its wide tolerance."""
import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, a, b):
        return a.to(torch.float8_e4m3fn).to(a.dtype) @ b.to(torch.float8_e4m3fn).to(b.dtype)
