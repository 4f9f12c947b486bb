# problem: row_means_expanded
# expected: correct
"""Mechanism: returns an expanded tensor, as the reference does. Surface: an output of stride 0."""
import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, x):
        ones = torch.ones(x.shape[1], 1, dtype=x.dtype, device=x.device)
        return ((x @ ones) / x.shape[1]).expand(x.shape)
