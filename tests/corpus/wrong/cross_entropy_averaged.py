# problem: level1/7
# expected: wrong_shape
# caught by: output_form
"""Mechanism: the mean over the samples. Surface: one number, nearly the same for every draw."""
from torch import nn


class ModelNew(nn.Module):
    def forward(self, logits, targets):
        return nn.functional.cross_entropy(logits, targets)
