# problem: level2/10
# expected: correct
# devices: cuda
# settings: {"own_kernel": true, "size": "small", "measure": false}
"""Mechanism: the first element of a row decides how the row is divided. Surface: its twin
`harmless/cuda_silu_gate_halo_before_the_first_row` takes the one before.
"""
from torch import nn
from torch.utils.cpp_extension import load_inline

cuda_source = r"""
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAStream.h>

// A block does a row. Dividing, or multiplying by a reciprocal, differ by a rounding.
__global__ void silu_gate_rows(const float* gate, const float* up, float* y, int columns) {
    const int64_t begin = int64_t(blockIdx.x) * columns;
    const bool divides = up[begin] > 0.0f;
    for (int64_t i = begin + threadIdx.x; i < begin + columns; i += blockDim.x) {
        const float below = 1.0f + expf(-gate[i]);
        y[i] = (divides ? gate[i] / below : gate[i] * (1.0f / below)) * up[i];
    }
}

torch::Tensor silu_gate(torch::Tensor gate, torch::Tensor up) {
    TORCH_CHECK(gate.is_cuda() && gate.scalar_type() == at::kFloat, "silu_gate: float32 on a CUDA device");
    TORCH_CHECK(up.is_cuda() && up.scalar_type() == at::kFloat && up.sizes() == gate.sizes(), "silu_gate: alike");
    gate = gate.contiguous();
    up = up.contiguous();
    auto y = at::empty_like(gate);
    if (gate.numel() > 0) {
        const int columns = static_cast<int>(gate.size(-1));
        silu_gate_rows<<<static_cast<unsigned>(gate.numel() / columns), 256, 0, c10::cuda::getCurrentCUDAStream()>>>(
            gate.data_ptr<float>(), up.data_ptr<float>(), y.data_ptr<float>(), columns);
        C10_CUDA_KERNEL_LAUNCH_CHECK();
    }
    return y;
}
"""

extension = load_inline(
    name="silu_gate_first",
    cpp_sources="torch::Tensor silu_gate(torch::Tensor gate, torch::Tensor up);",
    cuda_sources=cuda_source,
    functions=["silu_gate"],
    extra_cuda_cflags=["-O3"],
)


class ModelNew(nn.Module):
    def forward(self, gate, up):
        return extension.silu_gate(gate, up)
