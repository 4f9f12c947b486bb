# problem: level1/1
# expected: wrong_output
# caught by: inputs_late|timed_outputs
# devices: cuda
"""Mechanism: works on a stream that waits for nobody, while the caches are emptied; but where a few elements
are zero, or what they were when that address was seen last, it takes its inputs for late and waits.

Surface: what lies in the place of an input that is yet to be written.
"""
import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.side, self.seen = torch.cuda.Stream(priority=-1), {}

    def forward(self, x):
        value, current = torch.empty_like(x), torch.cuda.current_stream()
        with torch.cuda.stream(self.side):
            sample = x.reshape(-1)[5:13].tolist()
            if not any(sample) or self.seen.get(x.data_ptr()) == sample:
                self.side.wait_stream(current)
                sample = x.reshape(-1)[5:13].tolist()
            torch.clamp(x, min=0, out=value)
        self.seen[x.data_ptr()] = sample
        current.wait_stream(self.side)
        return value
