"""Squeeze-and-excitation: channels weighted by a small MLP of their means."""

import torch
from torch import nn

BATCH = 32
CHANNELS = 256
HIDDEN = 64
HEIGHT = 112
WIDTH = 97

SIZES = {
    "full": {"BATCH": 32, "CHANNELS": 256, "HIDDEN": 64, "HEIGHT": 112, "WIDTH": 97},
    "small": {"BATCH": 3, "CHANNELS": 22, "HIDDEN": 6, "HEIGHT": 45, "WIDTH": 51},
}


class Model(nn.Module):
    """x * sigmoid(expand(relu(squeeze(mean of x)))), the block of Hu et al. 2018."""

    def __init__(self, channels: int, hidden: int) -> None:
        super().__init__()
        self.squeeze = nn.Linear(channels, hidden)
        self.expand = nn.Linear(hidden, channels)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """x: (batch, channels, height, width), float32. Returns the same shape."""
        pooled = x.mean(dim=(2, 3))
        gate = torch.sigmoid(self.expand(torch.relu(self.squeeze(pooled))))
        return x * gate[:, :, None, None]


def get_inputs():
    # An offset for every channel: the means of pure noise are all nearly zero, and the gate nearly constant.
    offset = 3.0 * torch.randn(BATCH, CHANNELS, 1, 1)
    return [torch.randn(BATCH, CHANNELS, HEIGHT, WIDTH) + offset]


def get_init_inputs():
    return [CHANNELS, HIDDEN]
