"""Cosines between vectors of unit length."""

import torch
from torch import nn


class Model(nn.Module):
    def forward(self, x, y):
        return nn.functional.cosine_similarity(x[:, None], y[None], dim=-1)


def get_inputs():
    return [nn.functional.normalize(torch.randn(n, 48), dim=-1) for n in (129, 65)]


def get_init_inputs():
    return []
