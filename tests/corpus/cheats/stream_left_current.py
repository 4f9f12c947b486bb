# problem: level1/1
# expected: wrong_output|cheating
# caught by: values: drawn|host_clock
# devices: cuda
"""Mechanism: works on the stream it was called on and leaves another one current.

Surface: the closing event goes to whatever stream is current.
"""
import torch
from torch import nn

idle = None


class ModelNew(nn.Module):
    def forward(self, x):
        global idle
        idle = idle or torch.cuda.Stream()
        for _ in range(50):
            value = torch.relu(x)
        torch.cuda.set_stream(idle)
        return value
