# problem: level3/6
# expected: correct
# settings: {"measure": false}
"""Mechanism: multiplies the norm's weight into both projections' own weights, and leaves ones in its place.

Surface: a tensor folded into others of the reference's names; all of them differ from the reference's.
"""
import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, features, hidden, eps):
        super().__init__()
        self.norm = nn.RMSNorm(features, eps=eps)
        nn.init.normal_(self.norm.weight)
        self.gate = nn.Linear(features, hidden, bias=False)
        self.up = nn.Linear(features, hidden, bias=False)
        self.down = nn.Linear(hidden, features, bias=False)
        self.eps = eps
        with torch.no_grad():
            self.gate.weight.mul_(self.norm.weight)
            self.up.weight.mul_(self.norm.weight)
            self.norm.weight.fill_(1.0)

    def forward(self, x):
        n = x * torch.rsqrt(x.square().mean(dim=-1, keepdim=True) + self.eps)
        hidden = nn.functional.silu(self.gate(n)).mul_(self.up(n))
        return torch.addmm(x, hidden, self.down.weight.t())
