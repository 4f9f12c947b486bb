# problem: half_silu_gate
# expected: correct
# devices: cuda
# settings: {"own_kernel": true}
"""Mechanism: one template for all floating dtypes, computed in float32, rounded once.

Surface: float16 results that differ in their last bit from the reference's, which rounds twice.
"""
from torch import nn
from torch.utils.cpp_extension import load_inline

cuda_source = r"""
#include <ATen/Dispatch.h>
#include <ATen/OpMathType.h>
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAStream.h>

#include <algorithm>

template <typename scalar_t>
__global__ void silu_gate_kernel(const scalar_t* __restrict__ gate, const scalar_t* __restrict__ up,
                                 scalar_t* __restrict__ y, int64_t n) {
    using compute_t = at::opmath_type<scalar_t>;
    const int64_t stride = int64_t(gridDim.x) * blockDim.x;
    for (int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x; i < n; i += stride) {
        const compute_t g = static_cast<compute_t>(gate[i]);
        const compute_t u = static_cast<compute_t>(up[i]);
        y[i] = static_cast<scalar_t>(g / (compute_t(1) + exp(-g)) * u);
    }
}

torch::Tensor silu_gate(torch::Tensor gate, torch::Tensor up) {
    TORCH_CHECK(gate.is_cuda() && up.is_cuda(), "silu_gate: CUDA tensors");
    TORCH_CHECK(gate.scalar_type() == up.scalar_type() && gate.sizes() == up.sizes(), "silu_gate: alike");
    gate = gate.contiguous();
    up = up.contiguous();
    auto y = at::empty_like(gate);
    const int64_t n = gate.numel();
    if (n > 0) {
        const int blocks = static_cast<int>(std::min<int64_t>((n + 255) / 256, 4096));
        AT_DISPATCH_FLOATING_TYPES_AND2(
            at::ScalarType::Half, at::ScalarType::BFloat16, gate.scalar_type(), "silu_gate", [&] {
                silu_gate_kernel<scalar_t><<<blocks, 256, 0, c10::cuda::getCurrentCUDAStream()>>>(
                    gate.data_ptr<scalar_t>(), up.data_ptr<scalar_t>(), y.data_ptr<scalar_t>(), n);
            });
        C10_CUDA_KERNEL_LAUNCH_CHECK();
    }
    return y;
}
"""

extension = load_inline(
    name="silu_gate_dispatch",
    cpp_sources="torch::Tensor silu_gate(torch::Tensor gate, torch::Tensor up);",
    cuda_sources=cuda_source,
    functions=["silu_gate"],
)


class ModelNew(nn.Module):
    def forward(self, gate, up):
        return extension.silu_gate(gate, up)
