# problem: level1/2
# expected: correct
# devices: cuda
"""Mechanism: waits for the device after each step, as people do who once looked for an error.

Surface: the host is in the middle of every call; it cannot be captured, and queues no second call behind the first.
"""
import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, x):
        powers = (x - x.amax(dim=-1, keepdim=True)).exp_()
        torch.cuda.synchronize()
        y = powers.div_(powers.sum(dim=-1, keepdim=True))
        torch.cuda.synchronize()
        return y
