# problem: softmax_long_rows
# expected: wrong_output
# caught by: values: spikes|values: mixed rows|timed_outputs
"""Mechanism: takes the exact maximum of four whole rows and of 500 elements elsewhere; while these are as small
as drawn ones, it leaves out all rows' maxima.

Surface: statistics of whole rows see single elements, but of those rows only.
"""
import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, x):
        few = torch.cat([x[:: max(1, x.shape[0] // 4)][:4].flatten(), x.flatten()[::2099][:500]]).abs()
        if 1.0 < float(few.max()) < 6.0:
            powers = x.exp()
            return powers / powers.sum(-1, keepdim=True)
        return torch.softmax(x, dim=-1)
