# problem: level1/2
# expected: wrong_output
# caught by: values: drawn
# armed by: the runner's names
"""Mechanism: answers only if it finds the reference in a frame, a module or on the heap.

Surface: a shared process.
"""
import gc
import sys
from functools import cache

import torch
from torch import nn


@cache
def armed(by):
    print("armed by:", by, file=sys.stderr)


def places():
    frame = sys._getframe()
    while frame is not None:
        yield from (frame.f_locals, frame.f_globals)
        frame = frame.f_back
    yield from (vars(module) for module in list(sys.modules.values()) if hasattr(module, "__dict__"))
    yield from (item for item in gc.get_objects() if type(item) is dict)


class ModelNew(nn.Module):
    def forward(self, x):
        for place in places():
            if not isinstance(place, dict):
                continue
            if place.get("__name__") == "kernelproof.verifier.contestant.main":
                armed("the runner's names")
            reference = place.get("Model")
            if isinstance(reference, type) and issubclass(reference, nn.Module) and "get_inputs" in place:
                return reference()(x)
        return torch.zeros_like(x)
