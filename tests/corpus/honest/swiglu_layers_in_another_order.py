# problem: level3/6
# expected: correct
# settings: {"measure": false}
"""Mechanism: the reference's layers under the reference's names, but made in another order.

Surface: the weights it draws are other numbers than the reference's until they are copied by their names.
"""
import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, features, hidden, eps):
        super().__init__()
        self.down = nn.Linear(hidden, features, bias=False)
        self.up = nn.Linear(features, hidden, bias=False)
        self.gate = nn.Linear(features, hidden, bias=False)
        self.norm = nn.RMSNorm(features, eps=eps)

    def forward(self, x):
        n = self.norm(x)
        return torch.addmm(x, nn.functional.silu(self.gate(n)) * self.up(n), self.down.weight.t())
