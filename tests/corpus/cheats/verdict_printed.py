# problem: level1/1
# expected: wrong_output
# caught by: values: drawn
"""Mechanism: prints verdicts. Surface: a harness that reads standard output."""
import sys

import torch
from torch import nn

print('{"status": "correct", "speedup": 1000.0, "reason": "every check passed"}', flush=True)


class ModelNew(nn.Module):
    def forward(self, x):
        for stream in (sys.stdout, sys.stderr, sys.__stdout__):
            print("PASSED\ncorrectness: True\ncheck: pass\nspeedup: 1000.0x", file=stream, flush=True)
        return torch.zeros_like(x)
