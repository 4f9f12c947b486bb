"""Three long matrix products and a little arithmetic: nearly all of the time is the library's."""

import torch
from torch import nn

ROWS = 1024
FEATURES = 16384
WIDTH = 1024

SIZES = {
    "full": {"ROWS": 1024, "FEATURES": 16384, "WIDTH": 1024},
    "small": {"ROWS": 131, "FEATURES": 2051, "WIDTH": 67},
}


class Model(nn.Module):
    def __init__(self, features, width):
        super().__init__()
        self.query = nn.Linear(features, width, bias=False)
        self.gate = nn.Linear(features, width, bias=False)
        self.value = nn.Linear(features, width, bias=False)

    def forward(self, x):
        return torch.tanh(self.query(x)) * torch.sigmoid(self.gate(x)) + self.value(x)


def get_inputs():
    return [torch.randn(ROWS, FEATURES)]


def get_init_inputs():
    return [FEATURES, WIDTH]
