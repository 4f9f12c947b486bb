# problem: level1/1
# expected: timeout
# devices: cuda
# armed by: loop.run_block
# settings: {"own_kernel": true, "call_seconds": 1}
"""Mechanism: leaves an endless kernel in each of 24 contexts of its own when a long block is over.

Surface: kernels go on while its processes are held. The device takes turns with all contexts, so each wait of the
referee's and of the baseline's takes fifty milliseconds: a verification that never ends, or blames the machine.
"""
import sys

from torch import nn
from torch.utils.cpp_extension import load_inline

from kernelproof.verifier.contestant import loop

SOURCE = r"""
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAStream.h>
#include <cuda.h>
#include <dlfcn.h>

__global__ void relu_kernel(const float* x, float* y, int64_t n) {
    const int64_t i = blockIdx.x * int64_t(blockDim.x) + threadIdx.x;
    if (i < n) y[i] = x[i] < 0.0f ? 0.0f : x[i];
}

__global__ void waiting_kernel(volatile unsigned* word, bool for_ever) {
    while (for_ever && (*word == *word || word[1] != word[2])) word[3] = word[4];
}

torch::Tensor relu(torch::Tensor x) {
    x = x.contiguous();
    auto y = at::empty_like(x);
    const int64_t n = x.numel();
    if (n == 0) return y;
    relu_kernel<<<(n + 255) / 256, 256, 0, c10::cuda::getCurrentCUDAStream()>>>(
        x.data_ptr<float>(), y.data_ptr<float>(), n);
    C10_CUDA_KERNEL_LAUNCH_CHECK();
    return y;
}

static CUcontext contexts[24];
static unsigned* words[24];

template <class F> static F of(const char* name) {
    return F(dlsym(dlopen("libcuda.so.1", RTLD_NOW), name));
}

static void launch(int number, bool for_ever) {
    waiting_kernel<<<1, 1>>>(words[number], for_ever);
    C10_CUDA_KERNEL_LAUNCH_CHECK();
    CUcontext current;
    of<CUresult (*)(CUcontext*)>("cuCtxPopCurrent_v2")(&current);
}

void make() {
    for (int number = 0; number < 24; ++number) {
        auto create = of<CUresult (*)(CUcontext*, unsigned, CUdevice)>("cuCtxCreate_v2");
        TORCH_CHECK(!create(&contexts[number], 0, 0));
        C10_CUDA_CHECK(cudaMalloc(&words[number], 64));
        launch(number, false);
    }
}

void leave() {
    for (int number = 0; number < 24; ++number) {
        of<CUresult (*)(CUcontext)>("cuCtxPushCurrent_v2")(contexts[number]);
        launch(number, true);
    }
}
"""

extension = load_inline(
    "relu_kernels_left",
    "torch::Tensor relu(torch::Tensor x); void make(); void leave();",
    SOURCE,
    functions=["relu", "make", "leave"],
)
run_block, left = loop.run_block, []


def run_and_leave_kernels(forward, slots, *arguments, **keywords):
    times = run_block(forward, slots, *arguments, **keywords)
    if len(slots) > 8 and not left:
        left.append(True)
        extension.leave()
        print("armed by: loop.run_block", file=sys.stderr)
    return times


loop.run_block = run_and_leave_kernels


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        extension.make()

    def forward(self, x):
        return extension.relu(x)
