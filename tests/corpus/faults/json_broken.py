# problem: level1/1
# expected: crash
"""Mechanism: replaces json.dumps by what returns no text. Surface: modules shared with the runner."""
import json

import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, x):
        json.dumps = lambda *_, **__: 42
        return torch.relu(x)
