# problem: level1/4
# expected: correct
# settings: {"measure": false}
"""Mechanism: one step of Strassen's algorithm on padded operands. Surface: a few times the usual error."""
import torch
from torch import nn


def padded(x):
    return nn.functional.pad(x, (0, x.shape[1] % 2, 0, x.shape[0] % 2))


def quarters(x):
    top, bottom = x.chunk(2, dim=0)
    return *top.chunk(2, dim=1), *bottom.chunk(2, dim=1)


class ModelNew(nn.Module):
    def forward(self, a, b):
        a11, a12, a21, a22 = quarters(padded(a))
        b11, b12, b21, b22 = quarters(padded(b))
        p1 = (a11 + a22) @ (b11 + b22)
        p2 = (a21 + a22) @ b11
        p3 = a11 @ (b12 - b22)
        p4 = a22 @ (b21 - b11)
        p5 = (a11 + a12) @ b22
        p6 = (a21 - a11) @ (b11 + b12)
        p7 = (a12 - a22) @ (b21 + b22)
        top = torch.cat((p1 + p4 - p5 + p7, p3 + p5), dim=1)
        bottom = torch.cat((p2 + p4, p1 - p2 + p3 + p6), dim=1)
        return torch.cat((top, bottom))[: a.shape[0], : b.shape[1]]
