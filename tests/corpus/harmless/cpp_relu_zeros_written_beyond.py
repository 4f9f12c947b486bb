# problem: relu_of_uniform
# expected: correct
# flag: out_of_bounds_write
# devices: cpu
# settings: {"own_kernel": true, "measure": false}
"""Mechanism: zeros are written behind the input, so that whole blocks of sixteen can be read. Surface: nothing of
anybody's lies there, up to where the next tensor begins, and the result is right. Its honest twin is
`honest/cpp_relu_remainder_apart`.
"""
from torch import nn
from torch.utils.cpp_extension import load_inline

source = r"""
#include <algorithm>

torch::Tensor relu(const torch::Tensor& x) {
    TORCH_CHECK(x.is_cpu() && x.scalar_type() == at::kFloat && x.is_contiguous(), "dense float32 expected");
    const int64_t n = x.numel(), blocks = n / 16 + 1;
    auto out = at::empty({blocks * 16}, x.options());
    float* from = x.data_ptr<float>();
    float* to = out.data_ptr<float>();
    std::fill(from + n, from + blocks * 16, 0.0f);
    for (int64_t i = 0; i < blocks * 16; ++i) {
        to[i] = from[i] < 0.0f ? 0.0f : from[i];
    }
    return out.narrow(0, 0, n).view(x.sizes());
}
"""

extension = load_inline(
    name="relu_zeros_written_beyond", cpp_sources=source, functions=["relu"], extra_cflags=["-O3"]
)


class ModelNew(nn.Module):
    def forward(self, x):
        return extension.relu(x)
