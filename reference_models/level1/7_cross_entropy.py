"""Cross entropy of every sample: logits against class indices."""

import torch
from torch import nn

SAMPLES = 32768
CLASSES = 4096

SIZES = {
    "full": {"SAMPLES": 32768, "CLASSES": 4096},
    "small": {"SAMPLES": 517, "CLASSES": 2053},
}


class Model(nn.Module):
    """Negative log-likelihood of the target class under the softmax of the logits, one value a sample.

    Not averaged: the mean of many samples is nearly the same number for every draw.
    """

    def __init__(self) -> None:
        super().__init__()

    def forward(self, logits: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        """logits: (samples, classes), float32; targets: (samples,), int64. Returns (samples,)."""
        return nn.functional.cross_entropy(logits, targets, reduction="none")


def get_inputs():
    return [2.0 * torch.randn(SAMPLES, CLASSES), torch.randint(0, CLASSES, (SAMPLES,))]


def get_init_inputs():
    return []
