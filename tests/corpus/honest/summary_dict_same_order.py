# problem: summary_dict
# expected: correct
# settings: {"measure": false}
"""Mechanism: float32, int64, bool and a Python integer in one dict. Surface: dtypes must be kept apart."""
import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, x):
        above = ~(x <= 0.5)
        place = x.max(dim=1).indices
        return {"mean": x.mean(dim=1), "place": place, "above": above, "count": int(above.count_nonzero())}
