# problem: level1/1
# expected: wrong_output
# caught by: values: drawn
# devices: cuda
# settings: {"own_kernel": true}
"""Mechanism: a thread of C++ launches the kernel 20 ms after forward returned.

Surface: events recorded by then.
"""
from torch import nn
from torch.utils.cpp_extension import load_inline

SOURCE = r"""
#include <torch/extension.h>
#include <chrono>
#include <thread>

__global__ void relu_kernel(const float* x, float* y, int64_t count) {
    int64_t step = int64_t(gridDim.x) * blockDim.x;
    for (int64_t i = blockIdx.x * int64_t(blockDim.x) + threadIdx.x; i < count; i += step)
        y[i] = fmaxf(x[i], 0.0f);
}

torch::Tensor relu(torch::Tensor input) {
    auto x = input.contiguous();
    auto y = torch::zeros_like(x);
    std::thread([x, y, device = x.get_device()] {
        std::this_thread::sleep_for(std::chrono::milliseconds(20));
        cudaSetDevice(device);
        relu_kernel<<<2048, 256>>>(x.data_ptr<float>(), y.data_ptr<float>(), x.numel());
        cudaDeviceSynchronize();
    }).detach();
    return y;
}
"""

extension = load_inline(
    "launches_later", "torch::Tensor relu(torch::Tensor input);", SOURCE, functions=["relu"]
)


class ModelNew(nn.Module):
    def forward(self, x):
        return extension.relu(x)
