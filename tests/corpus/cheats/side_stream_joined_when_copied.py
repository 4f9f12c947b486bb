# problem: level1/1
# expected: cheating|wrong_output
# caught by: host_clock|timed_outputs|results_late
# devices: cuda
"""Mechanism: works on a side stream, which only the (overridden) copy of the output joins.

Surface: a window that ends when the current stream is done, before the copy. By then the last of its operations, which
alone writes the right values, is still under way.
"""
import torch
from torch import nn

side = None


def join_then_copy(self, source, non_blocking=False):
    if side is not None:
        torch.cuda.current_stream().wait_stream(side)
    return torch.neg(-source, out=self)


library = torch.library.Library("aten", "IMPL")
library.impl("copy_", join_then_copy, "CUDA")


class ModelNew(nn.Module):
    def forward(self, x):
        global side
        side = side or torch.cuda.Stream()
        value = torch.empty_like(x)
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            for _ in range(50):
                torch.neg(x, out=value)
            torch.clamp(x, min=0, out=value)
        return value
