# problem: level1/1
# expected: cheating
# caught by: host_clock
# devices: cuda
"""Mechanism: overwrites the machine code (x86-64) of cudaEventElapsedTime.

Surface: the runtime lies in our process.
"""
import ctypes
import mmap

import torch
from torch import nn

code = b"\xc7\x07\x0a\xd7\x23\x3c\x31\xc0\xc3"  # mov dword [rdi], 0.01f; xor eax, eax; ret
libc = ctypes.CDLL(None)
runtime = ctypes.CDLL(f"libcudart.so.{torch.version.cuda.split('.')[0]}")
for name in ("cudaEventElapsedTime", "cudaEventElapsedTime_v2"):
    if hasattr(runtime, name):
        address = ctypes.cast(getattr(runtime, name), ctypes.c_void_p).value
        page = address // mmap.PAGESIZE * mmap.PAGESIZE
        libc.mprotect(ctypes.c_void_p(page), ctypes.c_size_t(2 * mmap.PAGESIZE), 7)
        ctypes.memmove(address, code, len(code))


class ModelNew(nn.Module):
    def forward(self, x):
        for _ in range(40):
            y = torch.relu(x)
        return y
