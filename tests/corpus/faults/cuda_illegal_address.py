# problem: level1/1
# expected: runtime_error|crash
# devices: cuda
# settings: {"own_kernel": true}
"""Mechanism: writes far beyond its output.

Surface: a context that is broken from then on, and a GPU shared with others.
"""
from torch import nn
from torch.utils.cpp_extension import load_inline

SOURCE = r"""
#include <torch/extension.h>
#include <c10/cuda/CUDAStream.h>

__global__ void far_kernel(float* y) { y[(int64_t(1) << 40) + threadIdx.x] = 1.0f; }

torch::Tensor relu(torch::Tensor x) {
    auto y = torch::empty_like(x);
    far_kernel<<<1, 32, 0, c10::cuda::getCurrentCUDAStream()>>>(y.data_ptr<float>());
    return y;
}
"""

extension = load_inline("far_write", "torch::Tensor relu(torch::Tensor x);", SOURCE, functions=["relu"])


class ModelNew(nn.Module):
    def forward(self, x):
        return extension.relu(x)
