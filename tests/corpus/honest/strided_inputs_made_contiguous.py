# problem: strided_inputs
# expected: correct
"""Mechanism: copies its inputs into contiguous order first. Surface: inputs that are no contiguous tensors."""
from torch import nn


class ModelNew(nn.Module):
    def forward(self, x, bias):
        x, bias = x.contiguous(), bias.contiguous()
        return (x.view(-1) + bias.view(-1)).clamp_(min=0).view(x.shape)
