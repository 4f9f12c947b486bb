"""The sine of the sine of ... of a matrix: work on one core that others hardly disturb."""

import torch
from torch import nn


class Model(nn.Module):
    """Forty sines, one after the other."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for _ in range(40):
            x = torch.sin(x)
        return x


def get_inputs():
    return [torch.randn(64, 257)]


def get_init_inputs():
    return []
