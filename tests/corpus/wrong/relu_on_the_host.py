# problem: level1/1
# expected: wrong_dtype
# caught by: output_form
# devices: cuda
"""Mechanism: computes on the CPU and leaves the result there. Surface: a comparison that moves tensors."""
import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, x):
        return torch.relu(x.cpu())
