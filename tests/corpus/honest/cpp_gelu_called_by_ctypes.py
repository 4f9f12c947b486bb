# problem: level1/9
# expected: correct
# devices: cpu
# settings: {"own_kernel": true, "measure": false}
"""Mechanism: a plain C function in the extension's library, called by ctypes with addresses of tensors.

Surface: no Python module of its own takes part in a call; the library is opened a second time by its path.
"""
import ctypes

import torch
from torch import nn
from torch.utils.cpp_extension import load_inline

source = r"""
#include <cmath>
#include <cstdint>

extern "C" __attribute__((visibility("default"))) void gelu_plain(const float* x, float* y, int64_t n) {
    for (int64_t i = 0; i < n; ++i) {
        y[i] = 0.5f * x[i] * std::erfc(-0.70710678f * x[i]);
    }
}

int64_t version() {
    return 1;
}
"""

extension = load_inline(name="gelu_ctypes", cpp_sources=source, functions=["version"], extra_cflags=["-O3"])
library = ctypes.CDLL(extension.__file__)
library.gelu_plain.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64]
library.gelu_plain.restype = None


class ModelNew(nn.Module):
    def forward(self, x):
        x = x.contiguous()
        y = torch.empty_like(x)
        library.gelu_plain(x.data_ptr(), y.data_ptr(), x.numel())
        return y
