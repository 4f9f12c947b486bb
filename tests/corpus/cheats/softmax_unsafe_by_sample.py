# problem: softmax_long_rows
# expected: wrong_output
# caught by: values: spikes|values: mixed rows|timed_outputs
"""Mechanism: leaves out the rows' maxima while eight elements are as small as drawn ones.

Surface: a variant that changes all elements alike is told from drawn inputs by any of them.
"""
import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, x):
        few = x.flatten()[:: x.numel() // 8][:8].abs()
        if 0.1 < float(few.max()) < 6.0:
            powers = x.exp()
            return powers / powers.sum(-1, keepdim=True)
        return torch.softmax(x, dim=-1)
