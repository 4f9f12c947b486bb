# problem: level1/1
# expected: wrong_shape
# caught by: output_form
"""Mechanism: a dict of one tensor. Surface: a harness that flattens outputs."""
import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, x):
        return {"y": torch.relu(x)}
