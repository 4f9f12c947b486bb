# problem: level3/6
# expected: correct
# settings: {"measure": false}
"""Mechanism: draws the weights in the reference's order, then keeps two of them as one parameter.

Surface: names and shapes that do not match, so that no weight can be copied over.
"""
import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, features, hidden, eps):
        super().__init__()
        scale = torch.empty(features).normal_()
        gate, up, down = (
            nn.Linear(*sizes, bias=False).weight.detach()
            for sizes in ((features, hidden), (features, hidden), (hidden, features))
        )
        self.scale = nn.Parameter(scale)
        self.gate_and_up = nn.Parameter(torch.cat((gate, up)))
        self.back = nn.Parameter(down)
        self.eps = eps

    def forward(self, x):
        root = torch.rsqrt(x.square().mean(-1, keepdim=True) + self.eps)
        gate, up = (x * root * self.scale @ self.gate_and_up.t()).chunk(2, dim=-1)
        return torch.addmm(x, nn.functional.silu(gate) * up, self.back.t())
