# problem: level1/14
# expected: correct
"""Mechanism: a pool of threads takes a share each; the call returns when all are done.

Surface: threads that live on between calls, idle.
"""
from concurrent.futures import ThreadPoolExecutor

import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.pool = ThreadPoolExecutor(max_workers=3)

    def forward(self, a, b):
        y = torch.empty(a.shape[0], a.shape[1], b.shape[2], dtype=a.dtype, device=a.device)
        shares = zip(a.split(3), b.split(3), y.split(3))
        done = [self.pool.submit(torch.bmm, left, right, out=place) for left, right, place in shares]
        for share in done:
            share.result()
        return y
