# problem: level1/15
# expected: wrong_output
# caught by: values: drawn
"""Mechanism: looks up the row before. Surface: indices counted from one."""
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, vocabulary, features):
        super().__init__()
        self.embedding = nn.Embedding(vocabulary, features)

    def forward(self, index):
        return self.embedding((index - 1).clamp(min=0))
