# problem: cholesky_solve
# expected: correct
# settings: {"measure": false}
"""Mechanism: factors the matrix by Cholesky. Surface: a matrix that is no longer positive definite."""
import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, a, b):
        return torch.cholesky_solve(b, torch.linalg.cholesky(a))
