# problem: softplus_of_normal
# expected: correct
# devices: cpu
# settings: {"own_kernel": true, "measure": false}
"""Mechanism: log(1 + exp(x)), as textbooks have it. Surface: far below zero the sum is 1, so a result of 1e-8 is off
by all of it; but the function's terms are of size 1, and no kernel of float32 owes more.
"""

from torch import nn
from torch.utils.cpp_extension import load_inline

source = r"""
#include <cmath>

torch::Tensor softplus(const torch::Tensor& x) {
    const auto in = x.contiguous();
    auto out = at::empty_like(in);
    const float* from = in.data_ptr<float>();
    float* to = out.data_ptr<float>();
    for (int64_t i = 0; i < in.numel(); ++i) {
        to[i] = from[i] > 20.0f ? from[i] : std::log(1.0f + std::exp(from[i]));
    }
    return out;
}
"""

extension = load_inline(name="softplus", cpp_sources=source, functions=["softplus"], extra_cflags=["-O3"])


class ModelNew(nn.Module):
    def forward(self, x):
        return extension.softplus(x)
