# problem: level1/1
# expected: correct
# devices: cuda
# settings: {"own_kernel": true, "call_seconds": 1}
"""Mechanism: has 24 contexts of its own, and used each once, for a kernel that ended.

Surface: as many contexts as one whose endless kernels keep the device from everybody; these are at rest.
"""
from torch import nn
from torch.utils.cpp_extension import load_inline

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
"""

extension = load_inline(
    "relu_contexts_at_rest",
    "torch::Tensor relu(torch::Tensor x); void make();",
    SOURCE,
    functions=["relu", "make"],
)


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        extension.make()

    def forward(self, x):
        return extension.relu(x)
