# problem: level1/2
# expected: correct
# devices: cuda
"""Mechanism: torch's kernels captured once for each shape; inputs copied in, the result cloned out.

Surface: a graph replays fixed addresses, which hold live data.
"""
import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.graphs = {}

    def forward(self, x):
        if x.shape not in self.graphs:
            self.graphs[x.shape] = self.capture(x)
        graph, place, result = self.graphs[x.shape]
        place.copy_(x)
        graph.replay()
        return result.clone()

    def capture(self, x):
        place, side = torch.zeros(x.shape, dtype=x.dtype, device=x.device), torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            self.compute(place)
        torch.cuda.current_stream().wait_stream(side)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            result = self.compute(place)
        return graph, place, result

    def compute(self, x):
        powers = (x - x.amax(1, keepdim=True)).exp_()
        return powers / powers.sum(1, keepdim=True)
