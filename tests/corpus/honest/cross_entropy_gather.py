# problem: level1/7
# expected: correct
"""Mechanism: log-softmax and a gather. Surface: integer inputs must arrive as integers."""
import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, logits, targets):
        return -torch.log_softmax(logits, dim=1).gather(1, targets[:, None]).squeeze(1)
