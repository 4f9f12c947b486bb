import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self) -> None:
        super().__init__()

    def forward(self, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        return a + b


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(64, 4096), torch.randn(64, 4096)]


def get_init_inputs() -> list[object]:
    return []
