# problem: level1/1
# expected: correct
# devices: cuda
# settings: {"own_kernel": true}
"""Mechanism: `load_inline` with an include path of its own, for headers that it writes first.

Surface: the compilers see nothing that a candidate wrote, so the headers have to reach nvcc and the C++ compiler.
"""
import tempfile
from pathlib import Path

import torch
from torch import nn
from torch.utils.cpp_extension import load_inline

folder = Path(tempfile.mkdtemp())
(folder / "relu").mkdir()
(folder / "relu" / "launch.h").write_text(
    "#pragma once\n#include <cstdint>\nvoid relu(uintptr_t from, uintptr_t to, int64_t count, uintptr_t stream);\n"
)
(folder / "relu" / "kernel.cuh").write_text(r"""
#pragma once
#include "positive.cuh"

__global__ void own_relu(const float* __restrict__ from, float* __restrict__ to, int64_t count) {
    const int64_t step = int64_t(gridDim.x) * blockDim.x;
    for (int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x; i < count; i += step) {
        to[i] = positive(from[i]);
    }
}
""")
(folder / "relu" / "positive.cuh").write_text(
    "#pragma once\n__device__ __forceinline__ float positive(float v) { return v < 0.0f ? 0.0f : v; }\n"
)

cuda_source = r"""
#include <relu/kernel.cuh>
#include <relu/launch.h>

#include <algorithm>
#include <stdexcept>

void relu(uintptr_t from, uintptr_t to, int64_t count, uintptr_t stream) {
    if (count == 0) {
        return;
    }
    const int blocks = static_cast<int>(std::min<int64_t>((count + 255) / 256, 4096));
    own_relu<<<blocks, 256, 0, reinterpret_cast<cudaStream_t>(stream)>>>(
        reinterpret_cast<const float*>(from), reinterpret_cast<float*>(to), count);
    if (cudaGetLastError() != cudaSuccess) {
        throw std::runtime_error("the launch failed");
    }
}
"""

cpp_source = r"""
#include <pybind11/pybind11.h>
#include <relu/launch.h>

PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) { m.def("relu", &relu); }
"""

extension = load_inline(
    name="cuda_relu_own_header",
    cpp_sources=cpp_source,
    cuda_sources=cuda_source,
    extra_cuda_cflags=["-O3"],
    extra_include_paths=[str(folder)],
    no_implicit_headers=True,
)


class ModelNew(nn.Module):
    def forward(self, x):
        x = x.contiguous()
        y = torch.empty_like(x)
        extension.relu(x.data_ptr(), y.data_ptr(), x.numel(), torch.cuda.current_stream().cuda_stream)
        return y
