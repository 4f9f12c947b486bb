"""LSTM over a sequence from given first states: the outputs of all steps and the last states."""

import torch
from torch import nn

BATCH = 64
LENGTH = 128
IN_FEATURES = 256
HIDDEN = 512

SIZES = {
    "full": {"BATCH": 64, "LENGTH": 128, "IN_FEATURES": 256, "HIDDEN": 512},
    "small": {"BATCH": 5, "LENGTH": 19, "IN_FEATURES": 23, "HIDDEN": 37},
}


class Model(nn.Module):
    """The equations of one nn.LSTM layer, step by step."""

    def __init__(self, in_features: int, hidden: int) -> None:
        super().__init__()
        self.input = nn.Linear(in_features, 4 * hidden)
        self.recurrent = nn.Linear(hidden, 4 * hidden)

    def forward(
        self, x: torch.Tensor, h: torch.Tensor, c: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """x: (batch, length, in_features); h and c: (batch, hidden), float32.

        Returns the outputs (batch, length, hidden), the last h and the last c.
        """
        outputs = []
        for projected in self.input(x).unbind(dim=1):
            i, f, g, o = (projected + self.recurrent(h)).chunk(4, dim=-1)
            c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g)
            h = torch.sigmoid(o) * torch.tanh(c)
            outputs.append(h)
        return torch.stack(outputs, dim=1), h, c


def get_inputs():
    return [torch.randn(BATCH, LENGTH, IN_FEATURES), torch.randn(BATCH, HIDDEN), torch.randn(BATCH, HIDDEN)]


def get_init_inputs():
    return [IN_FEATURES, HIDDEN]
