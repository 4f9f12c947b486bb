# problem: level1/1
# expected: correct|cheating
# speedup below: 1.2
# devices: cuda
# settings: {"own_kernel": true, "size": "small", "measure_seconds": 3}
# armed by: the loop's slots
"""Mechanism: reads the next call's input early, on a side stream, through an access window whose lines
persist in L2.

Surface: a flush leaves persisting lines alone; the referee has to take them back.
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
    int64_t step = int64_t(gridDim.x) * blockDim.x;
    for (int64_t i = blockIdx.x * int64_t(blockDim.x) + threadIdx.x; i < count; i += step) total += x[i];
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
    auto stream = c10::cuda::getCurrentCUDAStream();
    relu_kernel<<<2048, 256, 0, stream>>>(x.data_ptr<float>(), y.data_ptr<float>(), x.numel());
    cudaDeviceSetLimit(cudaLimitPersistingL2CacheSize, 24 << 20);
    cudaStreamAttrValue value = {};
    value.accessPolicyWindow.base_ptr = next.data_ptr();
    value.accessPolicyWindow.num_bytes = next.numel() * sizeof(float);
    value.accessPolicyWindow.hitRatio = 1.0f;
    value.accessPolicyWindow.hitProp = cudaAccessPropertyPersisting;
    value.accessPolicyWindow.missProp = cudaAccessPropertyStreaming;
    cudaStreamSetAttribute(side, cudaStreamAttributeAccessPolicyWindow, &value);
    read_kernel<<<264, 256, 0, side>>>(next.data_ptr<float>(), sink, next.numel());
    cudaGetLastError();
    return y;
}
"""

extension = load_inline(
    "persisting", "torch::Tensor relu(torch::Tensor input, torch::Tensor next);", SOURCE, functions=["relu"]
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
