"""Number of occurrences of every class in a list of integers."""

import torch
from torch import nn

COUNT = 33554432
CLASSES = 1009

SIZES = {
    "full": {"COUNT": 33554432, "CLASSES": 1009},
    "small": {"COUNT": 200003, "CLASSES": 257},
}


class Model(nn.Module):
    """How often each of the integers 0 .. classes - 1 occurs."""

    def __init__(self, classes: int) -> None:
        super().__init__()
        self.classes = classes

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """x: (count,), int64, each in [0, classes). Returns (classes,), int64."""
        return torch.bincount(x, minlength=self.classes)


def get_inputs():
    return [torch.randint(0, CLASSES, (COUNT,))]


def get_init_inputs():
    return [CLASSES]
