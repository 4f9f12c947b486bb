# problem: level1/1
# expected: wrong_output
# caught by: timed_outputs
# devices: cuda
# settings: {"own_kernel": true}
"""Mechanism: after forty calls it asks for more shared memory than there is; no launch, no error, and the
allocator hands out memory with an earlier result in it.

Surface: launches that nobody checks.
"""
from torch import nn
from torch.utils.cpp_extension import load_inline

SOURCE = r"""
#include <torch/extension.h>
#include <c10/cuda/CUDAStream.h>

__global__ void relu_kernel(const float* x, float* y, int64_t count) {
    int64_t step = int64_t(gridDim.x) * blockDim.x;
    for (int64_t i = blockIdx.x * int64_t(blockDim.x) + threadIdx.x; i < count; i += step)
        y[i] = fmaxf(x[i], 0.0f);
}

torch::Tensor relu(torch::Tensor input, int64_t shared_bytes) {
    auto x = input.contiguous();
    auto y = torch::empty_like(x);
    relu_kernel<<<2048, 256, shared_bytes, c10::cuda::getCurrentCUDAStream()>>>(
        x.data_ptr<float>(), y.data_ptr<float>(), x.numel());
    cudaGetLastError();
    return y;
}
"""

extension = load_inline(
    "failing_launch",
    "torch::Tensor relu(torch::Tensor input, int64_t shared_bytes);",
    SOURCE,
    functions=["relu"],
)


class ModelNew(nn.Module):
    calls = 0

    def forward(self, x):
        self.calls += 1
        return extension.relu(x, 0 if self.calls <= 40 else 400_000)
