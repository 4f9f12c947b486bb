# problem: level3/6
# expected: correct
# devices: cuda
"""Mechanism: gate and up are multiplied on two streams of its own, forked and joined by events.

Surface: the current stream does next to nothing between two events; the streams live on between calls.
"""
import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, features, hidden, eps):
        super().__init__()
        self.norm = nn.RMSNorm(features, eps=eps)
        nn.init.normal_(self.norm.weight)
        self.gate = nn.Linear(features, hidden, bias=False)
        self.up = nn.Linear(features, hidden, bias=False)
        self.down = nn.Linear(hidden, features, bias=False)
        self.streams = None

    def forward(self, x):
        if self.streams is None:
            self.streams = torch.cuda.Stream(), torch.cuda.Stream()
        here = torch.cuda.current_stream()
        n = self.norm(x)
        forked = here.record_event()
        products = []
        for stream, layer in zip(self.streams, (self.gate, self.up)):
            stream.wait_event(forked)
            with torch.cuda.stream(stream):
                products.append(layer(n))
            n.record_stream(stream)
            here.wait_event(stream.record_event())
        for product in products:
            product.record_stream(here)
        gate, up = products
        return x + self.down(nn.functional.silu(gate) * up)
