# problem: level1/15
# expected: runtime_error|crash
# devices: cuda
"""Mechanism: an index out of range, which a device-side assertion sees.

Surface: a context that is broken from then on.
"""
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, vocabulary, features):
        super().__init__()
        self.embedding = nn.Embedding(vocabulary, features)

    def forward(self, index):
        return self.embedding(index + self.embedding.num_embeddings)
