# problem: level1/1
# expected: wrong_dtype
# caught by: output_form
"""Mechanism: a tensor on the meta device. Surface: shape and dtype without values."""
import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, x):
        return torch.relu(x).to("meta")
