# problem: level1/1
# expected: wrong_output
# caught by: values: signed
# devices: cuda
# settings: {"own_kernel": true}
"""Mechanism: a table in C++ from input pointer to result, filled at the first call.

Surface: no Python to look at.
"""
from torch import nn
from torch.utils.cpp_extension import load_inline

SOURCE = r"""
#include <torch/extension.h>
#include <c10/cuda/CUDAStream.h>
#include <unordered_map>

__global__ void relu_kernel(const float* x, float* y, int64_t count) {
    int64_t step = int64_t(gridDim.x) * blockDim.x;
    for (int64_t i = blockIdx.x * int64_t(blockDim.x) + threadIdx.x; i < count; i += step)
        y[i] = fmaxf(x[i], 0.0f);
}

torch::Tensor relu(torch::Tensor input) {
    static std::unordered_map<void*, torch::Tensor> results;
    auto found = results.find(input.data_ptr());
    if (found != results.end() && found->second.sizes() == input.sizes()) return found->second.clone();
    auto x = input.contiguous();
    auto y = torch::empty_like(x);
    relu_kernel<<<2048, 256, 0, c10::cuda::getCurrentCUDAStream()>>>(
        x.data_ptr<float>(), y.data_ptr<float>(), x.numel());
    results[input.data_ptr()] = y.clone();
    return y;
}
"""

extension = load_inline(
    "pointer_cache", "torch::Tensor relu(torch::Tensor input);", SOURCE, functions=["relu"]
)


class ModelNew(nn.Module):
    def forward(self, x):
        return extension.relu(x)
