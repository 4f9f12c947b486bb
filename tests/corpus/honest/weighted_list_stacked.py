# problem: weighted_list
# expected: correct
"""Mechanism: one product of the weights and all matrices. Surface: a list of tensors as one input."""
import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, parts, weights):
        return torch.einsum("i,ijk->jk", weights, torch.stack(parts))
