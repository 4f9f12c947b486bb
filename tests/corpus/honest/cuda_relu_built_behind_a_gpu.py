# problem: level1/1
# expected: correct
# devices: cuda
# settings: {"own_kernel": true}
"""Mechanism: builds its extension only where torch sees a GPU, for the kind of GPU that it finds, and keeps it
on self; elsewhere torch does the work.

Surface: the stage that builds has no GPU."""
import torch
from torch import nn
from torch.utils.cpp_extension import load_inline

SOURCE = r"""
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAStream.h>

__global__ void relu_kernel(const float* x, float* y, int64_t count) {
    const int64_t step = int64_t(gridDim.x) * blockDim.x;
    for (int64_t i = blockIdx.x * int64_t(blockDim.x) + threadIdx.x; i < count; i += step) {
        const float v = x[i];
        y[i] = v < 0.0f ? 0.0f : v;
    }
}

torch::Tensor relu(torch::Tensor input) {
    auto x = input.contiguous();
    auto y = torch::empty_like(x);
    relu_kernel<<<BLOCKS, 256, 0, c10::cuda::getCurrentCUDAStream()>>>(
        x.data_ptr<float>(), y.data_ptr<float>(), x.numel());
    C10_CUDA_KERNEL_LAUNCH_CHECK();
    return y;
}
"""


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.extension = None
        if torch.cuda.is_available():
            blocks = 16 * torch.cuda.get_device_properties(0).multi_processor_count
            major, minor = torch.cuda.get_device_capability()
            self.extension = load_inline(
                name=f"relu_for_{major}{minor}",
                cpp_sources="torch::Tensor relu(torch::Tensor input);",
                cuda_sources=SOURCE.replace("BLOCKS", str(blocks)),
                functions=["relu"],
            )

    def forward(self, x):
        return torch.relu(x) if self.extension is None else self.extension.relu(x)
