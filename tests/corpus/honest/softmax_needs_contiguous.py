# problem: level1/2
# expected: correct
# settings: {"measure": false}
"""Mechanism: takes the input as one flat piece, which a strided input refuses. Surface: an exception."""
import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, x):
        rows, columns = x.shape
        flat = x.view(-1)
        top = flat.view(rows, columns).amax(1).repeat_interleave(columns)
        powers = flat.sub(top).exp_().view(rows, columns)
        return powers.div_(powers.sum(1, keepdim=True))
