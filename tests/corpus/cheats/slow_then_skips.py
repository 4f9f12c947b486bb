# problem: level1/1
# expected: wrong_output
# caught by: timed_outputs
# settings: {"measure_seconds": 1}
"""Mechanism: sleeps through trials and warm-up, so that few calls are timed, then answers with old results.

Surface: a number of timed calls that the candidate's own speed decides.
"""
import time

import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.calls, self.result = 0, None

    def forward(self, x):
        self.calls += 1
        if self.calls <= 24:
            time.sleep(0.005)
            self.result = torch.relu(x)
        return self.result.clone()
