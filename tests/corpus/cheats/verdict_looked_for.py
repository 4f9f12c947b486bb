# problem: level1/1
# expected: wrong_output
# caught by: values: drawn
# armed by: the runner's names
"""Mechanism: sets every counter, flag and tolerance it finds in frames and modules, and answers zeros.

Surface: a checker that keeps its state where the candidate runs.
"""
import gc
import sys
from functools import cache

import torch
from torch import nn


@cache
def armed(by):
    print("armed by:", by, file=sys.stderr)


WANTED = {"wrong": 0, "errors": 0, "mismatches": 0, "passed": True, "correct": True, "atol": 1e9, "rtol": 1e9}


class ModelNew(nn.Module):
    def forward(self, x):
        frame, places = sys._getframe(1), []
        while frame is not None:
            places += [frame.f_globals, frame.f_locals]
            frame = frame.f_back
        places += [vars(m) for m in list(sys.modules.values()) if hasattr(m, "__dict__")]
        places += [item for item in gc.get_objects() if type(item) is dict and len(item) < 100]
        for place in places:
            if place.get("__name__") == "kernelproof.verifier.contestant.main":
                armed("the runner's names")
            for name in WANTED.keys() & place.keys():
                place[name] = WANTED[name]
        torch.allclose = torch.equal = lambda *_, **__: True
        return torch.zeros_like(x)
