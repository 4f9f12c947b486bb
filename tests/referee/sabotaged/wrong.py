"""Wrong in one element, with weights of the reference's names."""

import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.linear = nn.Linear(width, 3)
        self.register_buffer("shift", torch.ones(3))

    def forward(self, x):
        y = torch.addmm(self.linear.bias + self.shift, x, self.linear.weight.T)
        y[-1, -1] += 1
        return y, y.argmax(dim=1)
