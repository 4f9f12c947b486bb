# problem: level1/1
# expected: wrong_output
# caught by: values
# devices: cpu
# settings: {"measure": false}
# armed by: loop.copy_out, a memfd
"""Mechanism: makes the shared memory of its inputs and outputs shorter, and replies as if all were well.

Surface: who reads a mapping beyond the end of its file is killed: the referee, whose loss is nobody's fault.
"""
import os
import sys
from functools import cache

import torch
from torch import nn

from kernelproof.verifier.contestant import loop


@cache
def armed(by):
    print("armed by:", by, file=sys.stderr)


def copy_nothing(*_):
    armed("loop.copy_out")
    return True


class ModelNew(nn.Module):
    calls = 0

    def forward(self, x):
        self.calls += 1
        result = torch.relu(x)
        if self.calls == 3:
            loop.copy_out = copy_nothing
            for name in os.listdir("/proc/self/fd"):
                try:
                    if "memfd" in os.readlink(f"/proc/self/fd/{name}"):
                        armed("a memfd")
                        os.ftruncate(int(name), 0)
                except OSError:
                    pass
        return result
