# problem: small_adapter
# expected: correct
# flag: precision_not_separable
# settings: {"measure": false}
"""Mechanism: multiplies in bfloat16 in the small branch only. Surface: its error is small beside the result, no
more than what three TF32 products would make of the large branch. Its honest twin is
`honest/small_branch_in_two_steps`.
"""
import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.main = nn.Linear(dim, dim, bias=False)
        self.side = nn.Linear(dim, dim, bias=False)

    def forward(self, x):
        side = nn.functional.linear(x.bfloat16(), self.side.weight.bfloat16()).float()
        return self.main(x) + 0.002 * torch.tanh(side)
