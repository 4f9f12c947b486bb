"""The nearest entry of a codebook with a VQ-VAE's first values, ±1/CODES: all distances are nearly ||x||²."""

import torch
from torch import nn

ROWS = 1024
DIM = 256
CODES = 2048
SIZES = {"full": {"ROWS": 1024}, "small": {"ROWS": 67}}


class Model(nn.Module):
    def __init__(self, codes, dim):
        super().__init__()
        self.codebook = nn.Embedding(codes, dim)
        self.codebook.weight.data.uniform_(-1.0 / codes, 1.0 / codes)

    def forward(self, x):
        codes = self.codebook.weight
        distances = x.square().sum(1, keepdim=True) + codes.square().sum(1) - 2 * x @ codes.t()
        return distances.argmin(1)


def get_inputs():
    return [torch.randn(ROWS, DIM)]


def get_init_inputs():
    return [CODES, DIM]
