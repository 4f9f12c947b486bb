# problem: level2/3
# expected: correct
# devices: cpu
# settings: {"own_kernel": true}
"""Mechanism: the library multiplies both halves of the sum and torch adds them; an own loop adds the bias and does
GELU and scale.

Surface: libraries do other work than for the reference, and it takes longer than the GELU did. It is no GELU.
"""
import torch
from torch import nn
from torch.utils.cpp_extension import load_inline

SOURCE = r"""
#include <ATen/Parallel.h>
#include <torch/extension.h>

#include <cmath>

torch::Tensor bias_gelu_scale(torch::Tensor sums, torch::Tensor bias, double scale) {
    TORCH_CHECK(sums.dim() == 2 && sums.is_contiguous() && sums.scalar_type() == at::kFloat, "a float32 matrix");
    const int64_t width = sums.size(1);
    auto out = torch::empty_like(sums);
    const float* from = sums.data_ptr<float>();
    const float* added = bias.data_ptr<float>();
    float* to = out.data_ptr<float>();
    at::parallel_for(0, sums.size(0), 16, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin * width; i < end * width; ++i) {
            const float v = from[i] + added[i % width];
            to[i] = static_cast<float>(scale) * 0.5f * v * (1.0f + std::erf(v * 0.70710678f));
        }
    });
    return out;
}
"""

extension = load_inline("partial_products", cpp_sources=[SOURCE], functions=["bias_gelu_scale"])


class ModelNew(nn.Module):
    def __init__(self, in_features, out_features, scale):
        super().__init__()
        self.linear = nn.Linear(in_features, out_features)
        self.scale = scale

    def forward(self, x):
        weight, half = self.linear.weight, x.shape[1] // 2
        first = torch.mm(x[:, :half], weight[:, :half].t())
        second = torch.mm(x[:, half:], weight[:, half:].t())
        return extension.bias_gelu_scale(first + second, self.linear.bias, self.scale)
