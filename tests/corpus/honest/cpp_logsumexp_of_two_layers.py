# problem: logsumexp_of_two_layers
# expected: correct
# devices: cpu
# settings: {"own_kernel": true, "measure": false}
"""Mechanism: the library multiplies; a loop of its own adds the bias before sigmoid and logsumexp.

Surface: libraries do most of the work; a logsumexp in another order.
"""
import torch
from torch import nn
from torch.utils.cpp_extension import load_inline

SOURCE = r"""
#include <torch/extension.h>

#include <algorithm>
#include <cmath>

torch::Tensor sigmoid_of(const torch::Tensor& sums, const torch::Tensor& bias) {
    TORCH_CHECK(sums.is_contiguous() && sums.scalar_type() == at::kFloat, "float32 expected");
    auto out = at::empty_like(sums);
    const float *from = sums.data_ptr<float>(), *added = bias.data_ptr<float>();
    float* to = out.data_ptr<float>();
    const int64_t width = sums.size(1);
    for (int64_t i = 0; i < sums.numel(); ++i) {
        to[i] = 1.0f / (1.0f + std::exp(-(from[i] + added[i % width])));
    }
    return out;
}

torch::Tensor logsumexp_of(const torch::Tensor& sums, const torch::Tensor& bias) {
    TORCH_CHECK(sums.is_contiguous() && sums.scalar_type() == at::kFloat, "float32 expected");
    const int64_t rows = sums.size(0), width = sums.size(1);
    auto out = at::empty({rows}, sums.options());
    const float* added = bias.data_ptr<float>();
    for (int64_t row = 0; row < rows; ++row) {
        const float* from = sums.data_ptr<float>() + row * width;
        float most = -INFINITY;
        for (int64_t i = 0; i < width; ++i) {
            most = std::max(most, from[i] + added[i]);
        }
        double sum = 0.0;
        for (int64_t i = 0; i < width; ++i) {
            sum += std::exp(from[i] + added[i] - most);
        }
        out.data_ptr<float>()[row] = most + static_cast<float>(std::log(sum));
    }
    return out;
}
"""

extension = load_inline(
    "cpp_logsumexp_of_two_layers", cpp_sources=[SOURCE], functions=["sigmoid_of", "logsumexp_of"], extra_cflags=["-O3"]
)


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Linear(256, 1024), nn.Linear(1024, 8192)

    def forward(self, x):
        y = extension.sigmoid_of(torch.mm(x, self.first.weight.t()), self.first.bias)
        return extension.logsumexp_of(torch.mm(y, self.second.weight.t()), self.second.bias)
