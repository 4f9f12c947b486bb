# problem: level1/1
# expected: runtime_error|crash
# devices: cuda
"""Mechanism: closes the shared device memory that its inputs lie in. Surface: the runner's own mapping."""
import ctypes

import torch
from torch import nn

runtime = ctypes.CDLL(f"libcudart.so.{torch.version.cuda.split('.')[0]}")


class ModelNew(nn.Module):
    def forward(self, x):
        y = torch.relu(x)
        torch.cuda.synchronize()
        runtime.cudaIpcCloseMemHandle(ctypes.c_void_p(x.untyped_storage().data_ptr()))
        return torch.relu(x) + y
