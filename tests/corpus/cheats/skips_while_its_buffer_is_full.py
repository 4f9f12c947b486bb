# problem: level1/1
# expected: wrong_output
# caught by: values: signed|values: mixed rows
"""Mechanism: computes only if its buffer looks empty. Surface: buffers that still hold the last answer."""
import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.result = None

    def forward(self, x):
        if self.result is None or not self.result.any():
            self.result = torch.relu(x)
        return self.result.clone()
