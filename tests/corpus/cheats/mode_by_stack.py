# problem: level1/1
# expected: wrong_output
# caught by: timed_outputs
# armed by: the loop's frame
"""Mechanism: reads the call stack to learn whether it is timed, and answers with old results then.

Surface: different code around trials and timed calls.
"""
import sys
from functools import cache

import torch
from torch import nn


@cache
def armed(by):
    print("armed by:", by, file=sys.stderr)


def timed():
    frame = sys._getframe()
    while frame is not None:
        if frame.f_code.co_name in ("run_block", "_time"):
            armed("the loop's frame")
            return True
        frame = frame.f_back
    return False


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.result = None

    def forward(self, x):
        if self.result is None or not timed():
            self.result = torch.relu(x)
        return self.result.clone()
