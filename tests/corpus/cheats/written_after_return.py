# problem: level1/1
# expected: wrong_output
# caught by: values: drawn
"""Mechanism: a thread fills the result after forward returned. Surface: a check that comes late."""
import threading
import time

import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, x):
        value = torch.zeros_like(x)

        def later():
            time.sleep(0.2)
            torch.clamp(x, min=0, out=value)

        threading.Thread(target=later, daemon=True).start()
        return value
