# problem: level1/2
# expected: correct
"""Mechanism: keeps a scratch buffer between calls, results are new. Surface: looks like a cache, is none."""
import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.workspace = None

    def forward(self, x):
        if self.workspace is None:
            self.workspace = torch.empty_like(x)
        torch.sub(x, x.amax(1, keepdim=True), out=self.workspace)
        self.workspace.exp_()
        return self.workspace / self.workspace.sum(1, keepdim=True)
