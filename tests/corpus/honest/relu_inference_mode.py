# problem: level1/1
# expected: correct
"""Mechanism: computes under torch.inference_mode. Surface: outputs that are inference tensors."""
import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, x):
        with torch.inference_mode():
            return x.clamp(min=0)
