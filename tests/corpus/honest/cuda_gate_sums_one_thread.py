# problem: gate_sums
# expected: correct
# devices: cuda
"""Mechanism: a thread for each row, and one running sum in it.

Surface: `large` inputs: every sigmoid is one, and rounding errors of equal terms all have one sign.
"""
from torch import nn
from torch.utils.cpp_extension import load_inline

source = r"""
#include <torch/extension.h>
#include <c10/cuda/CUDAStream.h>

__global__ void sums(const float* x, float* out, int rows, int count) {
    const int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= rows) {
        return;
    }
    float sum = 0.0f;
    for (int i = 0; i < count; ++i) {
        sum += 0.7f / (1.0f + expf(-x[static_cast<long>(row) * count + i]));
    }
    out[row] = sum;
}

torch::Tensor gate_sums(const torch::Tensor& input) {
    TORCH_CHECK(input.is_cuda() && input.scalar_type() == at::kFloat, "float32 on a GPU expected");
    const auto x = input.contiguous();
    const int rows = x.size(0);
    auto out = at::empty({rows}, x.options());
    sums<<<(rows + 31) / 32, 32, 0, c10::cuda::getCurrentCUDAStream()>>>(
        x.data_ptr<float>(), out.data_ptr<float>(), rows, static_cast<int>(x.size(1)));
    TORCH_CHECK(cudaGetLastError() == cudaSuccess, "launch failed");
    return out;
}
"""

extension = load_inline(
    name="cuda_gate_sums_one_thread",
    cpp_sources="torch::Tensor gate_sums(const torch::Tensor& input);",
    cuda_sources=source,
    functions=["gate_sums"],
)


class ModelNew(nn.Module):
    def forward(self, x):
        return extension.gate_sums(x)
