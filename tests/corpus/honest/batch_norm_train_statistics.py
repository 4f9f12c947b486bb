# problem: batch_norm_train
# expected: correct
"""Mechanism: its own batch statistics, and the buffers updated in place as torch does.

Surface: buffers that change from call to call, as the reference's do.
"""
import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.norm = nn.BatchNorm2d(channels)

    def forward(self, x):
        norm, count = self.norm, x.numel() // x.shape[1]
        mean = x.mean((0, 2, 3))
        centred = x - mean[:, None, None]
        variance = centred.square().mean((0, 2, 3))
        norm.running_mean.lerp_(mean, norm.momentum)
        norm.running_var.lerp_(variance * (count / (count - 1)), norm.momentum)
        norm.num_batches_tracked += 1
        scale = norm.weight * torch.rsqrt(variance + norm.eps)
        return centred * scale[:, None, None] + norm.bias[:, None, None]
