# problem: level1/1
# expected: correct
# settings: {"measure": false}
"""Mechanism: a torch.autograd.Function with its own backward. Surface: the output of a custom function."""
import torch
from torch import nn


class Positive(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        y = x.clamp(min=0)
        ctx.save_for_backward(y)
        return y

    @staticmethod
    def backward(ctx, gradient):
        (y,) = ctx.saved_tensors
        return gradient * (y > 0)


class ModelNew(nn.Module):
    def forward(self, x):
        return Positive.apply(x)
