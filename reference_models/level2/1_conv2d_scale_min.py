"""3x3 convolution, scaling by a constant, minimum over the channels."""

import torch
from torch import nn

BATCH = 64
IN_CHANNELS = 64
OUT_CHANNELS = 128
HEIGHT = 256
WIDTH = 256
KERNEL_SIZE = 3
SCALE = 2.0

SIZES = {
    "full": {"BATCH": 64, "IN_CHANNELS": 64, "OUT_CHANNELS": 128, "HEIGHT": 256, "WIDTH": 256},
    "small": {"BATCH": 4, "IN_CHANNELS": 8, "OUT_CHANNELS": 16, "HEIGHT": 65, "WIDTH": 71},
}


class Model(nn.Module):
    """min over channels of scale * conv2d(x)."""

    def __init__(self, in_channels: int, out_channels: int, kernel_size: int, scale: float) -> None:
        super().__init__()
        self.conv = nn.Conv2d(in_channels, out_channels, kernel_size)
        self.scale = scale

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """x: (batch, in_channels, height, width), float32. Returns (batch, 1, height - 2, width - 2)."""
        x = self.conv(x) * self.scale
        return torch.min(x, dim=1, keepdim=True).values


def get_inputs():
    return [torch.randn(BATCH, IN_CHANNELS, HEIGHT, WIDTH)]


def get_init_inputs():
    return [IN_CHANNELS, OUT_CHANNELS, KERNEL_SIZE, SCALE]
