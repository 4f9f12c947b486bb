# problem: level1/1
# expected: cheating|runtime_error
# caught by: host_clock
# devices: cuda
"""Mechanism: works on a side stream, which only the (overridden) copy of the output joins.

Surface: the window ends at an event of the current stream. The digest of a result is fetched by the same copy, which
fails for the host.
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
                torch.clamp(x, min=0, out=value)
        return value
