# problem: level1/1
# expected: wrong_shape|wrong_dtype
# caught by: output_form
"""Mechanism: a numpy array. Surface: it compares equal."""
import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, x):
        return torch.relu(x).cpu().numpy()
