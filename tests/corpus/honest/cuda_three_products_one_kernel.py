# problem: gated_projections
# expected: correct
# devices: cuda
# settings: {"own_kernel": true}
"""Mechanism: the library multiplies three times, and one fused kernel does everything else.

Surface: its own share of the time is below one in a hundred, and yet nothing else was there to replace.
"""
from torch import nn
from torch.utils.cpp_extension import load_inline

cuda_source = r"""
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAStream.h>

#include <algorithm>

__global__ void gate_products(const float* __restrict__ query, const float* __restrict__ gate,
                              const float* __restrict__ value, float* __restrict__ y, int64_t n) {
    const int64_t stride = int64_t(gridDim.x) * blockDim.x;
    for (int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x; i < n; i += stride) {
        y[i] = tanhf(query[i]) / (1.0f + expf(-gate[i])) + value[i];
    }
}

torch::Tensor gated(torch::Tensor query, torch::Tensor gate, torch::Tensor value) {
    TORCH_CHECK(query.is_contiguous() && gate.is_contiguous() && value.is_contiguous(), "contiguous products");
    auto y = at::empty_like(query);
    if (const int64_t n = y.numel()) {
        const int blocks = static_cast<int>(std::min<int64_t>((n + 255) / 256, 4096));
        gate_products<<<blocks, 256, 0, c10::cuda::getCurrentCUDAStream()>>>(
            query.data_ptr<float>(), gate.data_ptr<float>(), value.data_ptr<float>(), y.data_ptr<float>(), n);
        C10_CUDA_KERNEL_LAUNCH_CHECK();
    }
    return y;
}
"""

extension = load_inline(
    name="gated_products",
    cpp_sources="torch::Tensor gated(torch::Tensor query, torch::Tensor gate, torch::Tensor value);",
    cuda_sources=cuda_source,
    functions=["gated"],
)


class ModelNew(nn.Module):
    def __init__(self, features, width):
        super().__init__()
        self.query = nn.Linear(features, width, bias=False)
        self.gate = nn.Linear(features, width, bias=False)
        self.value = nn.Linear(features, width, bias=False)

    def forward(self, x):
        return extension.gated(self.query(x), self.gate(x), self.value(x))
