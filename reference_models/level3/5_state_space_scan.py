"""Selective state-space scan: a linear recurrence whose decay depends on the input."""

import torch
from torch import nn

BATCH = 8
LENGTH = 256
CHANNELS = 1024
STATES = 16

SIZES = {
    "full": {"BATCH": 8, "LENGTH": 256, "CHANNELS": 1024, "STATES": 16},
    "small": {"BATCH": 2, "LENGTH": 33, "CHANNELS": 24, "STATES": 5},
}


class Model(nn.Module):
    """The recurrence of Mamba (Gu and Dao 2023), step by step.

    h[t] = exp(delta[t] A) h[t-1] + delta[t] B[t] x[t], and y[t] = C[t] . h[t] + D x[t].
    """

    def __init__(self, channels: int, states: int) -> None:
        super().__init__()
        self.log_a = nn.Parameter(0.5 * torch.randn(channels, states))
        self.d = nn.Parameter(torch.randn(channels))

    def forward(self, x: torch.Tensor, delta: torch.Tensor, b: torch.Tensor, c: torch.Tensor) -> torch.Tensor:
        """x and delta: (batch, length, channels); b and c: (batch, length, states), float32.

        Returns (batch, length, channels). The softplus of delta is the step.
        """
        step = nn.functional.softplus(delta)
        a = -torch.exp(self.log_a)
        h = x.new_zeros(x.shape[0], *self.log_a.shape)
        outputs = []
        for t in range(x.shape[1]):
            decay = torch.exp(step[:, t, :, None] * a)
            h = decay * h + (step[:, t] * x[:, t])[..., None] * b[:, t, None, :]
            outputs.append((h * c[:, t, None, :]).sum(dim=-1))
        return torch.stack(outputs, dim=1) + self.d * x


def get_inputs():
    x = torch.randn(BATCH, LENGTH, CHANNELS)
    delta = torch.randn(BATCH, LENGTH, CHANNELS)
    b = torch.randn(BATCH, LENGTH, STATES)
    c = torch.randn(BATCH, LENGTH, STATES)
    return [x, delta, b, c]


def get_init_inputs():
    return [CHANNELS, STATES]
