# problem: level1/4
# expected: correct
"""Mechanism: times its variants in the first call of a shape and keeps to the faster one.

Surface: reads clocks, remembers shapes, takes another way in the first call than in later ones.
"""
import time

import torch
from torch import nn


def whole(a, b):
    return a @ b


def transposed(a, b):
    return (b.t() @ a.t()).t()


def halves(a, b):
    middle = a.shape[1] // 2
    return torch.addmm(a[:, :middle] @ b[:middle], a[:, middle:], b[middle:])


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.chosen = {}

    def forward(self, a, b):
        key = (a.shape, b.shape, a.device)
        if key not in self.chosen:
            self.chosen[key] = min((whole, transposed, halves), key=lambda way: self.seconds(way, a, b))
        return self.chosen[key](a, b)

    def seconds(self, way, a, b):
        way(a, b)
        self.wait(a.device)
        start = time.perf_counter()
        for _ in range(3):
            way(a, b)
        self.wait(a.device)
        return time.perf_counter() - start

    def wait(self, device):
        if device.type == "cuda":
            torch.cuda.synchronize(device)
