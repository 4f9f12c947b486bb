# problem: level1/17
# expected: correct
# settings: {"measure": false}
"""Mechanism: value and inverted index packed into one integer, whose maximum is both.

Surface: floats as integers, where -0 and 0 must stay equal; first index among equal values.
"""
import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.dim = dim

    def forward(self, x):
        bits = (x + 0.0).contiguous().view(torch.int32).long()  # adding 0 turns -0 into 0
        key = torch.where(bits < 0, bits ^ 0x7FFFFFFF, bits)
        shape = [-1 if place == self.dim % x.dim() else 1 for place in range(x.dim())]
        reversed_index = (0xFFFFFFFF - torch.arange(x.shape[self.dim], device=x.device)).view(shape)
        best = ((key << 32) | reversed_index).amax(self.dim)
        index = 0xFFFFFFFF - (best & 0xFFFFFFFF)
        return x.gather(self.dim, index.unsqueeze(self.dim)).squeeze(self.dim), index
