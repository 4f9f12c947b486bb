# problem: level1/1
# expected: wrong_output
# caught by: result_kept
# settings: {"measure": false}
"""Mechanism: eighteen buffers for results, in turn: a result is overwritten by the eighteenth call after it.

Surface: a check that makes a few later calls, and blocks of sixteen. Who collects more results than that has
the same numbers twice.
"""
import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.rings = {}

    def forward(self, x):
        ring = self.rings.setdefault((x.shape, x.device), [])
        ring.append(ring.pop(0) if len(ring) == 18 else torch.empty_like(x))
        return ring[-1].copy_(x).clamp_(min=0)
