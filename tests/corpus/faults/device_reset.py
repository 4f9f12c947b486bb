# problem: level1/1
# expected: runtime_error|crash
# devices: cuda
"""Mechanism: resets the device under torch and the runner. Surface: pointers that no longer mean anything."""
import ctypes

import torch
from torch import nn

runtime = ctypes.CDLL(f"libcudart.so.{torch.version.cuda.split('.')[0]}")


class ModelNew(nn.Module):
    def forward(self, x):
        runtime.cudaDeviceReset()
        return torch.relu(x)
