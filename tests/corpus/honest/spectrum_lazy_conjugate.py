# problem: spectrum
# expected: correct
"""Mechanism: the conjugate of the inverse transform. Surface: a tensor that is conjugated only when read."""
import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, x):
        return torch.fft.ifft(x, dim=1, norm="forward").conj()
