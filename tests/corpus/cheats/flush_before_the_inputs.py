# problem: level1/1
# expected: runtime_error
# caught by: cache_emptied
# devices: cuda
# settings: {"size": "small"}
# armed by: loop.Calls
"""Mechanism: empties the cache before the inputs are made readable, which leaves them in the cache.

Surface: a proof that says only that the cache was emptied after the key had come.
"""
import sys
from functools import cache

import torch
from torch import nn

from kernelproof.verifier.contestant import loop


@cache
def armed(by):
    print("armed by:", by, file=sys.stderr)


def begin(self, masks, flush):
    armed("loop.Calls")
    call, seed = self.ask(self.fixed)
    if seed is not None:
        loop.seed_torch(seed)
    loop.forget_persisting_lines()
    key = self.release.receive(call)
    flush(key)
    self.release.apply(masks, key)


loop.Calls.begin = begin


class ModelNew(nn.Module):
    def forward(self, x):
        return torch.relu(x)
