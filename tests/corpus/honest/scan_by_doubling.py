# problem: level3/5
# expected: correct
# settings: {"measure": false}
"""Mechanism: the recurrence as a scan that doubles its reach in each step. Surface: products in another order."""
import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, channels, states):
        super().__init__()
        self.log_a = nn.Parameter(0.5 * torch.randn(channels, states))
        self.d = nn.Parameter(torch.randn(channels))

    def forward(self, x, delta, b, c):
        step = nn.functional.softplus(delta)
        decay = torch.exp(step[..., None] * -self.log_a.exp())
        h = (step * x)[..., None] * b[:, :, None, :]
        reach = 1
        while reach < x.shape[1]:
            h = torch.cat((h[:, :reach], h[:, reach:] + decay[:, reach:] * h[:, :-reach]), dim=1)
            decay = torch.cat((decay[:, :reach], decay[:, reach:] * decay[:, :-reach]), dim=1)
            reach *= 2
        return (h * c[:, :, None, :]).sum(-1) + self.d * x
