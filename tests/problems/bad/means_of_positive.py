"""Means of positive numbers, in an output of 8 bits: nearly the same for similar inputs."""

import torch
from torch import nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()

    def forward(self, x):
        return x.mean(dim=1).bfloat16()


def get_inputs():
    return [torch.rand(31, 400)]


def get_init_inputs():
    return []
