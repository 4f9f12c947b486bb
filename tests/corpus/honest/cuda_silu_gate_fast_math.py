# problem: level2/10
# expected: correct
# devices: cuda
# settings: {"own_kernel": true}
"""Mechanism: --use_fast_math, where the fast exponential and division are still right to a few units.

Surface: a flag that spoils other kernels.
"""
from torch import nn
from torch.utils.cpp_extension import load_inline

cuda_source = r"""
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAStream.h>

#include <algorithm>

__global__ void silu_gate_kernel(const float* __restrict__ gate, const float* __restrict__ up,
                                 float* __restrict__ y, int64_t n) {
    const int64_t stride = int64_t(gridDim.x) * blockDim.x;
    for (int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x; i < n; i += stride) {
        // Below -87 the fast division would meet a divisor beyond its range.
        const float g = fmaxf(gate[i], -80.0f);
        y[i] = gate[i] * (1.0f / (1.0f + expf(-g))) * up[i];
    }
}

torch::Tensor silu_gate(torch::Tensor gate, torch::Tensor up) {
    TORCH_CHECK(gate.is_cuda() && gate.scalar_type() == at::kFloat, "silu_gate: float32 on a CUDA device");
    TORCH_CHECK(up.is_cuda() && up.scalar_type() == at::kFloat && up.sizes() == gate.sizes(), "silu_gate: alike");
    gate = gate.contiguous();
    up = up.contiguous();
    auto y = at::empty_like(gate);
    const int64_t n = gate.numel();
    if (n > 0) {
        const int blocks = static_cast<int>(std::min<int64_t>((n + 255) / 256, 4096));
        silu_gate_kernel<<<blocks, 256, 0, c10::cuda::getCurrentCUDAStream()>>>(
            gate.data_ptr<float>(), up.data_ptr<float>(), y.data_ptr<float>(), n);
        C10_CUDA_KERNEL_LAUNCH_CHECK();
    }
    return y;
}
"""

extension = load_inline(
    name="silu_gate_fast",
    cpp_sources="torch::Tensor silu_gate(torch::Tensor gate, torch::Tensor up);",
    cuda_sources=cuda_source,
    functions=["silu_gate"],
    extra_cuda_cflags=["-O3", "--use_fast_math"],
)


class ModelNew(nn.Module):
    def forward(self, gate, up):
        return extension.silu_gate(gate, up)
