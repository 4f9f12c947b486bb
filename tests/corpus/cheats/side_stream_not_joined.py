# problem: level1/1
# expected: wrong_output|nondeterministic
# caught by: values: drawn|values: repeat
# devices: cuda
"""Mechanism: works on a stream that nobody waits for.

Surface: events on the current stream see nothing of it.
"""
import torch
from torch import nn

side = None


class ModelNew(nn.Module):
    def forward(self, x):
        global side
        side = side or torch.cuda.Stream()
        value = torch.empty_like(x)
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            for _ in range(50):
                value.copy_(x)
            value.clamp_(min=0)
        return value
