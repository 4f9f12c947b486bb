"""Softmax of scores under a mask that is an input, lower triangular here."""

import torch
from torch import nn

HEADS = 32
LENGTH = 512
SIZES = {"full": {"LENGTH": 512}, "small": {"LENGTH": 64}}


class Model(nn.Module):
    def forward(self, scores, mask):
        return torch.softmax(scores.masked_fill(~mask, float("-inf")), dim=-1)


def get_inputs():
    return [torch.randn(HEADS, LENGTH, LENGTH), torch.ones(LENGTH, LENGTH, dtype=torch.bool).tril()]


def get_init_inputs():
    return []
