# problem: level1/9
# expected: correct
# devices: cuda
# settings: {"size": "small"}
"""Mechanism: a graph for each address and shape of its input, captured when it first sees them; results are cloned.

Surface: a graph over the memory of an earlier input, as the cheat's; but it reads what is there now.
"""
import torch
from torch import nn

MOST = 256


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.graphs = {}

    def forward(self, x):
        key = x.data_ptr(), x.shape, x.stride()
        if key not in self.graphs:
            if len(self.graphs) == MOST:
                self.graphs.pop(next(iter(self.graphs)))
            self.graphs[key] = self.capture(x)
        graph, result = self.graphs[key]
        graph.replay()
        return result.clone()

    def capture(self, x):
        nn.functional.gelu(x)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            result = nn.functional.gelu(x)
        return graph, result
