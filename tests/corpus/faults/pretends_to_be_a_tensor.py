# problem: level1/1
# expected: wrong_dtype|runtime_error
"""Mechanism: an object whose __class__ is torch.Tensor and whose attributes raise. Surface: isinstance."""
import torch
from torch import nn


class Pretender:
    @property
    def __class__(self):
        return torch.Tensor

    def __getattr__(self, name):
        raise SystemExit(0)


class ModelNew(nn.Module):
    def forward(self, x):
        return Pretender()
