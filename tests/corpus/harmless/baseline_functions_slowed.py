# problem: level1/1
# expected: correct
# speedup below: 2
# settings: {"measure_seconds": 1}
"""Mechanism: makes torch's functions slow for everybody but itself, and changes the process's flags.

Surface: a baseline in the same process, or one that starts with the candidate's settings.
"""
import os
import time

import torch
from torch import nn

relu = torch.relu


def slow(function):
    def slowed(*arguments, **keywords):
        time.sleep(0.02)
        return function(*arguments, **keywords)

    return slowed


torch.relu = slow(torch.relu)
torch.Tensor.relu = slow(torch.Tensor.relu)
nn.functional.relu = slow(nn.functional.relu)
nn.Module.__call__ = slow(nn.Module.__call__) if os.environ.get("BASELINE") else nn.Module.__call__
nn.modules.module.register_module_forward_pre_hook(lambda module, _: None)
torch.use_deterministic_algorithms(True, warn_only=True)
torch.backends.cudnn.enabled = False
os.environ["OMP_NUM_THREADS"] = os.environ["MKL_NUM_THREADS"] = "1"


class ModelNew(nn.Module):
    def forward(self, x):
        return relu(x)
