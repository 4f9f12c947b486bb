"""Two-dimensional convolution with a kernel that is not square, stride and padding."""

import torch
from torch import nn

BATCH = 32
IN_CHANNELS = 32
OUT_CHANNELS = 64
HEIGHT = 256
WIDTH = 192
KERNEL_SIZE = (3, 5)
STRIDE = (2, 1)
PADDING = (1, 2)

SIZES = {
    "full": {"BATCH": 32, "IN_CHANNELS": 32, "OUT_CHANNELS": 64, "HEIGHT": 256, "WIDTH": 192},
    "small": {"BATCH": 3, "IN_CHANNELS": 6, "OUT_CHANNELS": 10, "HEIGHT": 45, "WIDTH": 61},
}


class Model(nn.Module):
    """nn.Conv2d with bias."""

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: tuple[int, int],
        stride: tuple[int, int],
        padding: tuple[int, int],
    ) -> None:
        super().__init__()
        self.conv = nn.Conv2d(in_channels, out_channels, kernel_size, stride=stride, padding=padding)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """x: (batch, in_channels, height, width), float32. Returns (batch, out_channels, h_out, w_out)."""
        return self.conv(x)


def get_inputs():
    return [torch.randn(BATCH, IN_CHANNELS, HEIGHT, WIDTH)]


def get_init_inputs():
    return [IN_CHANNELS, OUT_CHANNELS, KERNEL_SIZE, STRIDE, PADDING]
