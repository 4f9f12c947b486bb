"""silu(gate) * up in float16: eager torch rounds after each operation."""

import torch
from torch import nn


class Model(nn.Module):
    def forward(self, gate, up):
        return nn.functional.silu(gate) * up


def get_inputs():
    return [torch.randn(1031, 1025, dtype=torch.float16), torch.randn(1031, 1025, dtype=torch.float16)]


def get_init_inputs():
    return []
