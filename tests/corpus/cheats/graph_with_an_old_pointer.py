# problem: level1/1
# expected: wrong_output
# caught by: timed_outputs
# devices: cuda
"""Mechanism: replays a graph captured over the first input's memory. Surface: trials at one address only."""
import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.graph = None

    def forward(self, x):
        if self.graph is None:
            torch.relu(x)
            self.graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(self.graph):
                self.value = torch.relu(x)
        self.graph.replay()
        return self.value.clone()
