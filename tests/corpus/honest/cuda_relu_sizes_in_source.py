# problem: relu_of_uniform
# expected: correct
# devices: cuda
# settings: {"own_kernel": true}
"""Mechanism: the declared sizes are constants of the kernel, and nothing asks whether the input has them.

Surface: another batch size gives an output of the wrong shape; right for the problem as it is declared.
"""
from torch import nn
from torch.utils.cpp_extension import load_inline

cuda_source = r"""
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAStream.h>

constexpr int ROWS = 127;
constexpr int COLUMNS = 33;

__global__ void __launch_bounds__(COLUMNS) relu_rows(const float* __restrict__ x, float* __restrict__ y) {
    const int i = blockIdx.x * COLUMNS + threadIdx.x;
    y[i] = x[i] < 0.0f ? 0.0f : x[i];
}

torch::Tensor relu(torch::Tensor x) {
    x = x.contiguous();
    auto y = at::empty({ROWS, COLUMNS}, x.options());
    relu_rows<<<ROWS, COLUMNS, 0, c10::cuda::getCurrentCUDAStream()>>>(x.data_ptr<float>(), y.data_ptr<float>());
    C10_CUDA_KERNEL_LAUNCH_CHECK();
    return y;
}
"""

extension = load_inline(
    name="relu_constants",
    cpp_sources="torch::Tensor relu(torch::Tensor x);",
    cuda_sources=cuda_source,
    functions=["relu"],
)


class ModelNew(nn.Module):
    def forward(self, x):
        return extension.relu(x)
