# problem: level1/1
# expected: correct|cheating
# speedup below: 1.2
# devices: cuda
# settings: {"own_kernel": true, "size": "small", "measure_seconds": 3}
# armed by: the loop's slots
"""Mechanism: reads the next call's input early, on a side stream, with loads whose lines are evicted last.

Surface: a flush evicts in the cache's own order.
"""
import sys
from functools import cache

from torch import nn
from torch.utils.cpp_extension import load_inline

from kernelproof.verifier.contestant import loop


@cache
def armed(by):
    print("armed by:", by, file=sys.stderr)


SOURCE = r"""
#include <torch/extension.h>
#include <c10/cuda/CUDAStream.h>

__global__ void relu_kernel(const float* x, float* y, int64_t count) {
    int64_t step = int64_t(gridDim.x) * blockDim.x;
    for (int64_t i = blockIdx.x * int64_t(blockDim.x) + threadIdx.x; i < count; i += step)
        y[i] = fmaxf(x[i], 0.0f);
}

__global__ void read_kernel(const float* x, float* sink, int64_t count) {
    float total = 0.0f;
    unsigned long long policy;
    asm volatile("createpolicy.fractional.L2::evict_last.b64 %0, 1.0;" : "=l"(policy));
    int64_t step = int64_t(gridDim.x) * blockDim.x;
    for (int64_t i = blockIdx.x * int64_t(blockDim.x) + threadIdx.x; i < count; i += step) {
        float value;
        asm volatile("ld.global.L2::cache_hint.f32 %0, [%1], %2;" : "=f"(value) : "l"(x + i), "l"(policy));
        total += value;
    }
    if (total == 12345.678f) *sink = total;
}

torch::Tensor relu(torch::Tensor input, torch::Tensor next) {
    static cudaStream_t side = nullptr;
    static float* sink = nullptr;
    if (!side) {
        cudaStreamCreateWithFlags(&side, cudaStreamNonBlocking);
        cudaMalloc(&sink, sizeof(float));
    }
    auto x = input.contiguous();
    auto y = torch::empty_like(x);
    relu_kernel<<<2048, 256, 0, c10::cuda::getCurrentCUDAStream()>>>(
        x.data_ptr<float>(), y.data_ptr<float>(), x.numel());
    read_kernel<<<264, 256, 0, side>>>(next.data_ptr<float>(), sink, next.numel());
    return y;
}
"""

extension = load_inline(
    "evict_last", "torch::Tensor relu(torch::Tensor input, torch::Tensor next);", SOURCE, functions=["relu"]
)


def after(x):
    frame = sys._getframe()
    while frame is not None:
        slots = frame.f_locals.get("slots")
        if isinstance(slots, list) and slots and isinstance(slots[0], loop.Slot):
            armed("the loop's slots")
            inputs = [slot.arguments[0] for slot in slots]
            places = [other.data_ptr() for other in inputs]
            return inputs[(places.index(x.data_ptr()) + 1) % len(inputs)]
        frame = frame.f_back
    return x


class ModelNew(nn.Module):
    def forward(self, x):
        return extension.relu(x, after(x))
