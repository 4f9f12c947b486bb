# problem: level1/1
# expected: load_error|crash
"""Mechanism: asks for a build whose source is as long as a frame may be. Surface: bounds of one message."""
import torch
from torch import nn
from torch.utils.cpp_extension import load_inline

load_inline("kernel", cpp_sources="//" + "x" * ((16 << 20) - 1000))


class ModelNew(nn.Module):
    def forward(self, x):
        return torch.relu(x)
