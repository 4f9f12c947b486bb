# problem: linear_dropout_eval
# expected: correct
# settings: {"measure": false}
"""Mechanism: leaves out a dropout that does nothing in evaluation mode. Surface: a step is missing."""
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, in_features, out_features):
        super().__init__()
        self.linear = nn.Linear(in_features, out_features)

    def forward(self, x):
        return self.linear(x).relu_()
