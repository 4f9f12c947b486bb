# problem: level1/2
# expected: correct
"""Mechanism: registers its scratch memory as a buffer in the first call, and writes it in every call.

Surface: a module whose state grows and changes; the reference has none.
"""
import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, x):
        if not hasattr(self, "scratch") or self.scratch.shape != x.shape:
            self.register_buffer("scratch", torch.empty(x.shape, dtype=x.dtype, device=x.device))
        torch.sub(x, x.amax(1, keepdim=True), out=self.scratch)
        self.scratch.exp_()
        return self.scratch / self.scratch.sum(1, keepdim=True)
