"""Residual block: two 3x3 convolutions with group normalisation, and a 1x1 convolution on the shortcut."""

import torch
from torch import nn

BATCH = 32
IN_CHANNELS = 64
OUT_CHANNELS = 128
HEIGHT = 112
WIDTH = 96
STRIDE = 2
GROUPS = 4

SIZES = {
    "full": {"BATCH": 32, "IN_CHANNELS": 64, "OUT_CHANNELS": 128, "HEIGHT": 112, "WIDTH": 96},
    "small": {"BATCH": 3, "IN_CHANNELS": 6, "OUT_CHANNELS": 12, "HEIGHT": 33, "WIDTH": 29},
}


class Model(nn.Module):
    """relu(shortcut(x) + norm(conv(relu(norm(conv(x)))))), where the first convolution has the stride."""

    def __init__(self, in_channels: int, out_channels: int, stride: int, groups: int) -> None:
        super().__init__()
        self.first = nn.Conv2d(in_channels, out_channels, 3, stride=stride, padding=1, bias=False)
        self.first_norm = nn.GroupNorm(groups, out_channels)
        self.second = nn.Conv2d(out_channels, out_channels, 3, padding=1, bias=False)
        self.second_norm = nn.GroupNorm(groups, out_channels)
        self.shortcut = nn.Conv2d(in_channels, out_channels, 1, stride=stride)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """x: (batch, in_channels, height, width), float32. Returns (batch, out_channels, h_out, w_out)."""
        y = torch.relu(self.first_norm(self.first(x)))
        y = self.second_norm(self.second(y))
        return torch.relu(self.shortcut(x) + y)


def get_inputs():
    return [torch.randn(BATCH, IN_CHANNELS, HEIGHT, WIDTH)]


def get_init_inputs():
    return [IN_CHANNELS, OUT_CHANNELS, STRIDE, GROUPS]
