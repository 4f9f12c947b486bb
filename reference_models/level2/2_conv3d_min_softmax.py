"""3x3x3 convolution, minimum over the depth, softmax over the channels."""

import torch
from torch import nn

BATCH = 128
IN_CHANNELS = 3
OUT_CHANNELS = 24
DEPTH = 24
HEIGHT = 32
WIDTH = 32
KERNEL_SIZE = 3
DIM = 2

SIZES = {
    "full": {"BATCH": 128, "IN_CHANNELS": 3, "OUT_CHANNELS": 24, "DEPTH": 24, "HEIGHT": 32, "WIDTH": 32},
    "small": {"BATCH": 4, "IN_CHANNELS": 3, "OUT_CHANNELS": 24, "DEPTH": 10, "HEIGHT": 16, "WIDTH": 17},
}


class Model(nn.Module):
    """softmax over channels of the minimum of conv3d(x) over one spatial dimension."""

    def __init__(self, in_channels: int, out_channels: int, kernel_size: int, dim: int) -> None:
        super().__init__()
        self.conv = nn.Conv3d(in_channels, out_channels, kernel_size)
        self.dim = dim

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """x: (batch, in_channels, depth, height, width), float32.

        Returns (batch, out_channels, height - 2, width - 2) for dim 2.
        """
        x = self.conv(x)
        x = torch.min(x, dim=self.dim).values
        return torch.softmax(x, dim=1)


def get_inputs():
    return [torch.randn(BATCH, IN_CHANNELS, DEPTH, HEIGHT, WIDTH)]


def get_init_inputs():
    return [IN_CHANNELS, OUT_CHANNELS, KERNEL_SIZE, DIM]
