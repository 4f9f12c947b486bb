"""Causal one-dimensional convolution of every channel with a kernel of its own."""

import torch
from torch import nn

BATCH = 16
CHANNELS = 2048
LENGTH = 4096
KERNEL_SIZE = 4

SIZES = {
    "full": {"BATCH": 16, "CHANNELS": 2048, "LENGTH": 4096},
    "small": {"BATCH": 3, "CHANNELS": 65, "LENGTH": 515},
}


class Model(nn.Module):
    """A depthwise nn.Conv1d that sees the present and the past only."""

    def __init__(self, channels: int, kernel_size: int) -> None:
        super().__init__()
        self.padding = kernel_size - 1
        self.conv = nn.Conv1d(channels, channels, kernel_size, groups=channels)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """x: (batch, channels, length), float32. Returns the same shape."""
        return self.conv(nn.functional.pad(x, (self.padding, 0)))


def get_inputs():
    return [torch.randn(BATCH, CHANNELS, LENGTH)]


def get_init_inputs():
    return [CHANNELS, KERNEL_SIZE]
