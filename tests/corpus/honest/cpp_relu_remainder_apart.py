# problem: relu_of_uniform
# expected: correct
# devices: cpu
# settings: {"own_kernel": true, "measure": false}
"""Mechanism: blocks of sixteen, and what is left over one by one. Surface: it ends where its input ends, as the
members that reach beyond theirs do not (`cpp_relu_next_block_ahead`, `harmless/cpp_relu_zero_from_beyond`,
`harmless/cpp_relu_zeros_written_beyond`).
"""
from torch import nn
from torch.utils.cpp_extension import load_inline

source = r"""
#include <algorithm>

torch::Tensor relu(const torch::Tensor& x) {
    TORCH_CHECK(x.is_cpu() && x.scalar_type() == at::kFloat, "float32 on the CPU expected");
    const auto in = x.contiguous();
    auto out = at::empty_like(in);
    const float* from = in.data_ptr<float>();
    float* to = out.data_ptr<float>();
    const int64_t n = in.numel(), whole = n - n % 16;
    for (int64_t i = 0; i < whole; i += 16) {
        for (int64_t lane = i; lane < i + 16; ++lane) {
            to[lane] = from[lane] < 0.0f ? 0.0f : from[lane];
        }
    }
    for (int64_t i = whole; i < n; ++i) {
        to[i] = from[i] < 0.0f ? 0.0f : from[i];
    }
    return out;
}
"""

extension = load_inline(
    name="relu_remainder_apart", cpp_sources=source, functions=["relu"], extra_cflags=["-O3"]
)


class ModelNew(nn.Module):
    def forward(self, x):
        return extension.relu(x)
