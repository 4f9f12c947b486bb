"""ConvNeXt block: 7x7 depthwise convolution, layer norm over the channels, MLP, residual connection."""

import torch
from torch import nn

BATCH = 32
CHANNELS = 192
HEIGHT = 56
WIDTH = 52
EXPANSION = 4

SIZES = {
    "full": {"BATCH": 32, "CHANNELS": 192, "HEIGHT": 56, "WIDTH": 52},
    "small": {"BATCH": 2, "CHANNELS": 18, "HEIGHT": 27, "WIDTH": 23},
}


class Model(nn.Module):
    """The block of Liu et al. 2022, without its layer scale."""

    def __init__(self, channels: int, expansion: int) -> None:
        super().__init__()
        self.depthwise = nn.Conv2d(channels, channels, 7, padding=3, groups=channels)
        self.norm = nn.LayerNorm(channels)
        self.expand = nn.Linear(channels, expansion * channels)
        self.reduce = nn.Linear(expansion * channels, channels)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """x: (batch, channels, height, width), float32. Returns the same shape."""
        y = self.norm(self.depthwise(x).permute(0, 2, 3, 1))
        y = self.reduce(nn.functional.gelu(self.expand(y)))
        return x + y.permute(0, 3, 1, 2)


def get_inputs():
    return [torch.randn(BATCH, CHANNELS, HEIGHT, WIDTH)]


def get_init_inputs():
    return [CHANNELS, EXPANSION]
