"""Two-dimensional max pooling with overlapping windows and padding."""

import torch
from torch import nn

BATCH = 32
CHANNELS = 64
HEIGHT = 255
WIDTH = 257
KERNEL_SIZE = 3
STRIDE = 2
PADDING = 1

SIZES = {
    "full": {"BATCH": 32, "CHANNELS": 64, "HEIGHT": 255, "WIDTH": 257},
    "small": {"BATCH": 3, "CHANNELS": 7, "HEIGHT": 61, "WIDTH": 75},
}


class Model(nn.Module):
    """nn.MaxPool2d; what lies in the padding never wins."""

    def __init__(self, kernel_size: int, stride: int, padding: int) -> None:
        super().__init__()
        self.pool = nn.MaxPool2d(kernel_size, stride=stride, padding=padding)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """x: (batch, channels, height, width), float32. Returns (batch, channels, h_out, w_out)."""
        return self.pool(x)


def get_inputs():
    return [torch.randn(BATCH, CHANNELS, HEIGHT, WIDTH)]


def get_init_inputs():
    return [KERNEL_SIZE, STRIDE, PADDING]
