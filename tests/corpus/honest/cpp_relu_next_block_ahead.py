# problem: relu_of_uniform
# expected: correct
# devices: cpu
# settings: {"own_kernel": true, "measure": false}
"""Mechanism: the next block of sixteen is loaded while this one is computed, also behind the last one. Surface: it
reads up to 68 bytes beyond its input, and masks out what it read there: no result depends on it. Its twin that
ends where its input ends is `cpp_relu_remainder_apart`.
"""
from torch import nn
from torch.utils.cpp_extension import load_inline

source = r"""
#include <algorithm>

torch::Tensor relu(const torch::Tensor& x) {
    TORCH_CHECK(x.is_cpu() && x.scalar_type() == at::kFloat, "float32 on the CPU expected");
    const auto in = x.contiguous();
    auto out = at::empty_like(in);
    const volatile float* from = in.data_ptr<float>();  // volatile: the loads beyond the end are made
    float* to = out.data_ptr<float>();
    const int64_t n = in.numel();
    float block[16], next[16];
    std::copy(from, from + 16, block);
    for (int64_t i = 0; i < n; i += 16) {
        std::copy(from + i + 16, from + i + 32, next);
        for (int64_t lane = 0; lane < std::min<int64_t>(16, n - i); ++lane) {
            to[i + lane] = block[lane] < 0.0f ? 0.0f : block[lane];
        }
        std::copy(next, next + 16, block);
    }
    return out;
}
"""

extension = load_inline(
    name="relu_next_block_ahead", cpp_sources=source, functions=["relu"], extra_cflags=["-O3"]
)


class ModelNew(nn.Module):
    def forward(self, x):
        return extension.relu(x)
