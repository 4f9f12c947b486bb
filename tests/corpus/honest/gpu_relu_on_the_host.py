# problem: level1/1
# expected: correct
# devices: cuda
"""Mechanism: fetches the input into pinned memory, computes on the processor, and brings the result back.

Surface: no kernel at all on the GPU; slow, and right.
"""
import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, x):
        here = torch.empty(x.shape, dtype=x.dtype, pin_memory=True)
        here.copy_(x, non_blocking=True)
        torch.cuda.current_stream().synchronize()
        return here.clamp_(min=0).to(x.device)
