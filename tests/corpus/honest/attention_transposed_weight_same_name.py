# problem: level3/1
# expected: correct
# settings: {"measure": false}
"""Mechanism: keeps the output projection's weight transposed, under its own name.

Surface: the weight is square, so name, shape and dtype are the reference's; the values lie elsewhere.
"""
import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, features, heads):
        super().__init__()
        self.heads = heads
        self.norm = nn.LayerNorm(features)
        self.qkv = nn.Linear(features, 3 * features)
        self.out = nn.Linear(features, features)
        self.out.weight = nn.Parameter(self.out.weight.t().contiguous(), requires_grad=False)

    def forward(self, x):
        batch, length, features = x.shape
        qkv = self.qkv(self.norm(x)).view(batch, length, 3, self.heads, -1)
        q, k, v = qkv.permute(2, 0, 3, 1, 4)
        y = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        y = y.transpose(1, 2).reshape(batch * length, features)
        return torch.addmm(self.out.bias, y, self.out.weight).view_as(x).add_(x)
