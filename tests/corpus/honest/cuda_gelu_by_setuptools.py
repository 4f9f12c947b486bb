# problem: level1/9
# expected: correct
# devices: cuda
# settings: {"own_kernel": true}
"""Mechanism: `CUDAExtension` and `BuildExtension`, built in place by setuptools, imported as any module.

Surface: nothing is loaded through torch.utils.cpp_extension.
"""
import os
import sys
import tempfile
from pathlib import Path

import torch
from setuptools import setup
from torch import nn
from torch.utils.cpp_extension import BuildExtension, CUDAExtension

folder = Path(tempfile.mkdtemp())
(folder / "gelu.h").write_text(
    "#include <cstdint>\nvoid gelu(uintptr_t from, uintptr_t to, int64_t count, uintptr_t stream);\n"
)
(folder / "gelu.cu").write_text(r"""
#include "gelu.h"

#include <algorithm>
#include <stdexcept>

__global__ void own_gelu(const float* __restrict__ from, float* __restrict__ to, int64_t count) {
    const int64_t step = int64_t(gridDim.x) * blockDim.x;
    for (int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x; i < count; i += step) {
        to[i] = 0.5f * from[i] * (1.0f + erff(from[i] * ROOT_OF_HALF));
    }
}

void gelu(uintptr_t from, uintptr_t to, int64_t count, uintptr_t stream) {
    if (count == 0) {
        return;
    }
    const int blocks = static_cast<int>(std::min<int64_t>((count + THREADS - 1) / THREADS, 4096));
    own_gelu<<<blocks, THREADS, 0, reinterpret_cast<cudaStream_t>(stream)>>>(
        reinterpret_cast<const float*>(from), reinterpret_cast<float*>(to), count);
    if (cudaGetLastError() != cudaSuccess) {
        throw std::runtime_error("the launch failed");
    }
}
""")
(folder / "bind.cpp").write_text(r"""
#include <pybind11/pybind11.h>
#include "gelu.h"

PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) { m.def("gelu", &gelu); }
""")

before = os.getcwd()
os.chdir(folder)
setup(
    name="gelu_by_setuptools",
    ext_modules=[
        CUDAExtension(
            "gelu_by_setuptools",
            ["bind.cpp", "gelu.cu"],
            define_macros=[("ROOT_OF_HALF", "0.70710678f")],
            extra_compile_args={"cxx": ["-O2"], "nvcc": ["-O3", "-DTHREADS=256"]},
        )
    ],
    cmdclass={"build_ext": BuildExtension},
    script_args=["build_ext", "--inplace"],
)
os.chdir(before)
sys.path.insert(0, str(folder))

import gelu_by_setuptools as extension


class ModelNew(nn.Module):
    def forward(self, x):
        x = x.contiguous()
        y = torch.empty_like(x)
        extension.gelu(x.data_ptr(), y.data_ptr(), x.numel(), torch.cuda.current_stream().cuda_stream)
        return y
