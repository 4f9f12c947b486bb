# problem: level2/12
# expected: wrong_output
# caught by: values: drawn|values: signed|values: large
"""Mechanism: the table kept as 16-bit integers, with a scale for each row: half of the bytes.

Surface: an error of 2.5e-5, which float32's floor accepts. Its honest twin is `embedding_bag_in_turn`.
"""

import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, vocabulary, features, scale):
        super().__init__()
        self.table = nn.Parameter(torch.randn(vocabulary, features))
        self.scale = scale

    def forward(self, index, weight):
        step = self.table.abs().amax(1, keepdim=True) / 32767
        short = (self.table / step).round().short()
        total = torch.zeros(index.shape[0], self.table.shape[1], device=index.device)
        for place in range(index.shape[1]):
            row = index[:, place]
            total = torch.addcmul(total, short[row] * step[row], weight[:, place, None])
        return torch.tanh(self.scale * total)
