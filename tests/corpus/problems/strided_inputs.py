"""Inputs that are no contiguous tensors: a transposed one, and one whose rows are all the same memory."""

import torch
from torch import nn

ROWS = 517
COLUMNS = 1021


class Model(nn.Module):
    def forward(self, x, bias):
        return torch.relu(x + bias)


def get_inputs():
    return [torch.randn(COLUMNS, ROWS).t(), torch.randn(COLUMNS).expand(ROWS, COLUMNS)]


def get_init_inputs():
    return []
