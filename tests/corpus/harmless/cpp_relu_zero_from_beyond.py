# problem: relu_of_uniform
# expected: correct
# flag: out_of_bounds_read
# devices: cpu
# settings: {"own_kernel": true, "measure": false}
"""Mechanism: a maximum that starts at what lies 64 bytes beyond the input. Surface: zeros lie there, up to where
the next tensor begins, and the result is right. Its honest twin is `honest/cpp_relu_remainder_apart`.
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
    const int64_t n = in.numel();
    const float least = from[n + 16];
    for (int64_t i = 0; i < n; ++i) {
        to[i] = from[i] < least ? least : from[i];
    }
    return out;
}
"""

extension = load_inline(
    name="relu_zero_from_beyond", cpp_sources=source, functions=["relu"], extra_cflags=["-O3"]
)


class ModelNew(nn.Module):
    def forward(self, x):
        return extension.relu(x)
