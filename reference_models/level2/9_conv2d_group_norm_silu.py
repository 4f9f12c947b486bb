"""3x3 convolution, group normalisation, SiLU."""

import torch
from torch import nn

BATCH = 32
IN_CHANNELS = 32
OUT_CHANNELS = 64
HEIGHT = 128
WIDTH = 160
KERNEL_SIZE = 3
GROUPS = 4

SIZES = {
    "full": {"BATCH": 32, "IN_CHANNELS": 32, "OUT_CHANNELS": 64, "HEIGHT": 128, "WIDTH": 160},
    "small": {"BATCH": 3, "IN_CHANNELS": 5, "OUT_CHANNELS": 12, "HEIGHT": 37, "WIDTH": 45},
}


class Model(nn.Module):
    """silu(group_norm(conv2d(x))), with drawn weight and bias in the normalisation."""

    def __init__(self, in_channels: int, out_channels: int, kernel_size: int, groups: int) -> None:
        super().__init__()
        self.conv = nn.Conv2d(in_channels, out_channels, kernel_size, padding=kernel_size // 2)
        self.norm = nn.GroupNorm(groups, out_channels)
        nn.init.normal_(self.norm.weight)
        nn.init.normal_(self.norm.bias)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """x: (batch, in_channels, height, width), float32. Returns (batch, out_channels, height, width)."""
        return nn.functional.silu(self.norm(self.conv(x)))


def get_inputs():
    return [torch.randn(BATCH, IN_CHANNELS, HEIGHT, WIDTH)]


def get_init_inputs():
    return [IN_CHANNELS, OUT_CHANNELS, KERNEL_SIZE, GROUPS]
