# problem: level3/4
# expected: wrong_shape
# caught by: output_form
"""Mechanism: returns the first of three outputs. Surface: a harness that looks at the first one."""
import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, in_features, hidden):
        super().__init__()
        self.input = nn.Linear(in_features, 4 * hidden)
        self.recurrent = nn.Linear(hidden, 4 * hidden)

    def forward(self, x, h, c):
        outputs = []
        for projected in self.input(x).unbind(dim=1):
            i, f, g, o = (projected + self.recurrent(h)).chunk(4, dim=-1)
            c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g)
            h = torch.sigmoid(o) * torch.tanh(c)
            outputs.append(h)
        return torch.stack(outputs, dim=1)
