"""A linear layer, a dropout in training mode and a softmax: forward draws random numbers."""

import torch
from torch import nn

FEATURES = 387


class Model(nn.Module):
    def __init__(self, features):
        super().__init__()
        self.linear = nn.Linear(features, features)
        self.dropout = nn.Dropout(0.2)

    def forward(self, x):
        return torch.softmax(self.dropout(self.linear(x)), dim=1)


def get_inputs():
    return [torch.rand(129, FEATURES)]


def get_init_inputs():
    return [FEATURES]
