# problem: level1/7
# expected: wrong_output
# caught by: values: large|values: mixed rows
"""Mechanism: the logarithm of a sum of unscaled powers; overflows. Surface: right for small logits."""
from torch import nn


class ModelNew(nn.Module):
    def forward(self, logits, targets):
        return logits.exp().sum(1).log() - logits.gather(1, targets[:, None]).squeeze(1)
