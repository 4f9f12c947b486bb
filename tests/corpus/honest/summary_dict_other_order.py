# problem: summary_dict
# expected: correct
"""Mechanism: a dict whose keys were put in in another order, which makes equal dicts.

Surface: the structure of the output; a Python integer that must be counted anew.
"""
import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, x):
        above = torch.gt(x, 0.5)
        return {
            "count": above.sum().item(),
            "above": above,
            "mean": x.sum(dim=1) / x.shape[1],
            "place": x.max(dim=1).indices,
        }
