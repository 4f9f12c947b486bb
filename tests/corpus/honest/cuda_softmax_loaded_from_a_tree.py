# problem: level1/2
# expected: correct
# devices: cuda
# settings: {"own_kernel": true}
"""Mechanism: `load` over a folder with headers beside the sources and above them; names that two sources have.

Surface: each source is compiled by itself, and finds what it includes.
"""
import tempfile
from pathlib import Path

import torch
from torch import nn
from torch.utils.cpp_extension import load

files = {
    "include/softmax.h": r"""
#pragma once
#include <cuda_runtime.h>
#include <cstdint>
// One number a row: the greatest element, then the sum of the powers.
void tops(const float* x, float* top, int64_t rows, int64_t columns, cudaStream_t stream);
void shares(const float* x, const float* top, float* y, int64_t rows, int64_t columns, cudaStream_t stream);
""",
    "src/block.cuh": r"""
#pragma once
constexpr int THREADS = 512;

template <typename Join>
__device__ float over_block(float value, float none, Join join) {
    __shared__ float parts[THREADS / 32];
    for (int offset = 16; offset > 0; offset >>= 1) {
        value = join(value, __shfl_xor_sync(0xffffffffu, value, offset));
    }
    if (threadIdx.x % 32 == 0) {
        parts[threadIdx.x / 32] = value;
    }
    __syncthreads();
    value = threadIdx.x % 32 < THREADS / 32 ? parts[threadIdx.x % 32] : none;
    for (int offset = 16; offset > 0; offset >>= 1) {
        value = join(value, __shfl_xor_sync(0xffffffffu, value, offset));
    }
    return value;
}
""",
    "src/tops.cu": r"""
#include "../include/softmax.h"
#include "block.cuh"

static __device__ float joined(float a, float b) { return a > b || isnan(a) ? a : b; }

static __global__ void softmax_rows(const float* __restrict__ x, float* __restrict__ top, int64_t columns) {
    const float* in = x + int64_t(blockIdx.x) * columns;
    float found = -INFINITY;
    for (int64_t i = threadIdx.x; i < columns; i += THREADS) {
        found = joined(in[i], found);
    }
    found = over_block(found, -INFINITY, [](float a, float b) { return joined(a, b); });
    if (threadIdx.x == 0) {
        top[blockIdx.x] = found;
    }
}

void tops(const float* x, float* top, int64_t rows, int64_t columns, cudaStream_t stream) {
    softmax_rows<<<static_cast<unsigned>(rows), THREADS, 0, stream>>>(x, top, columns);
}
""",
    "src/shares.cu": r"""
#include "../include/softmax.h"
#include "block.cuh"

static __device__ float joined(float a, float b) { return a + b; }

static __global__ void softmax_rows(const float* __restrict__ x, const float* __restrict__ top,
                                    float* __restrict__ y, int64_t columns) {
    const float* in = x + int64_t(blockIdx.x) * columns;
    float* out = y + int64_t(blockIdx.x) * columns;
    const float most = top[blockIdx.x];
    float total = 0.0f;
    for (int64_t i = threadIdx.x; i < columns; i += THREADS) {
        total = joined(total, expf(in[i] - most));
    }
    total = over_block(total, 0.0f, [](float a, float b) { return joined(a, b); });
    for (int64_t i = threadIdx.x; i < columns; i += THREADS) {
        out[i] = expf(in[i] - most) / total;
    }
}

void shares(const float* x, const float* top, float* y, int64_t rows, int64_t columns, cudaStream_t stream) {
    softmax_rows<<<static_cast<unsigned>(rows), THREADS, 0, stream>>>(x, top, y, columns);
}
""",
    "bind.cpp": r"""
#include <pybind11/pybind11.h>
#include <softmax.h>
#include <stdexcept>

static void softmax(uintptr_t x, uintptr_t top, uintptr_t y, int64_t rows, int64_t columns, uintptr_t stream) {
    const auto* in = reinterpret_cast<const float*>(x);
    const auto queue = reinterpret_cast<cudaStream_t>(stream);
    tops(in, reinterpret_cast<float*>(top), rows, columns, queue);
    shares(in, reinterpret_cast<const float*>(top), reinterpret_cast<float*>(y), rows, columns, queue);
    if (cudaGetLastError() != cudaSuccess) {
        throw std::runtime_error("a launch failed");
    }
}

PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) { m.def("softmax", &softmax); }
""",
}

folder = Path(tempfile.mkdtemp())
for name, text in files.items():
    (folder / name).parent.mkdir(exist_ok=True)
    (folder / name).write_text(text)
extension = load(
    name="cuda_softmax_tree",
    sources=[str(folder / name) for name in files if name.endswith((".cpp", ".cu"))],
    extra_include_paths=[str(folder / "include")],
    extra_cuda_cflags=["-O3"],
)


class ModelNew(nn.Module):
    def forward(self, x):
        x = x.contiguous()
        y = torch.empty_like(x)
        rows = x.numel() // max(x.size(-1), 1)
        if rows > 0 and x.size(-1) > 0:
            top = torch.empty(rows, device=x.device)
            stream = torch.cuda.current_stream().cuda_stream
            extension.softmax(x.data_ptr(), top.data_ptr(), y.data_ptr(), rows, x.size(-1), stream)
        return y
