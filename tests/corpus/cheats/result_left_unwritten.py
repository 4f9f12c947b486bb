# problem: level1/1
# expected: wrong_output
# caught by: values: drawn
"""Mechanism: returns torch.empty_like. Surface: memory in which a freed expected result may still lie."""
import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, x):
        torch.cuda.empty_cache()
        return torch.empty_like(x)
