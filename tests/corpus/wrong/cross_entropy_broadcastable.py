# problem: level1/7
# expected: wrong_shape
# caught by: output_form
"""Mechanism: (samples, 1) instead of (samples,). Surface: a comparison that broadcasts."""
import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, logits, targets):
        return -torch.log_softmax(logits, dim=1).gather(1, targets[:, None])
