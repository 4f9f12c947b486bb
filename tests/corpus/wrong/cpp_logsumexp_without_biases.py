# problem: logsumexp_of_two_layers
# expected: wrong_output
# caught by: values: drawn
# devices: cpu
# settings: {"own_kernel": true, "measure": false}
"""Mechanism: the library multiplies, and both biases are left out.

Surface: torch draws biases around zero: the logsumexp of many features averages them away.
"""
import torch
from torch import nn
from torch.utils.cpp_extension import load_inline

SOURCE = r"""
#include <torch/extension.h>

#include <algorithm>
#include <cmath>

torch::Tensor sigmoid_of(const torch::Tensor& sums) {
    TORCH_CHECK(sums.is_contiguous() && sums.scalar_type() == at::kFloat, "float32 expected");
    auto out = at::empty_like(sums);
    const float* from = sums.data_ptr<float>();
    float* to = out.data_ptr<float>();
    for (int64_t i = 0; i < sums.numel(); ++i) {
        to[i] = 1.0f / (1.0f + std::exp(-from[i]));
    }
    return out;
}

torch::Tensor logsumexp_of(const torch::Tensor& sums) {
    TORCH_CHECK(sums.is_contiguous() && sums.scalar_type() == at::kFloat, "float32 expected");
    const int64_t rows = sums.size(0), width = sums.size(1);
    auto out = at::empty({rows}, sums.options());
    for (int64_t row = 0; row < rows; ++row) {
        const float* from = sums.data_ptr<float>() + row * width;
        float most = -INFINITY;
        for (int64_t i = 0; i < width; ++i) {
            most = std::max(most, from[i]);
        }
        double sum = 0.0;
        for (int64_t i = 0; i < width; ++i) {
            sum += std::exp(from[i] - most);
        }
        out.data_ptr<float>()[row] = most + static_cast<float>(std::log(sum));
    }
    return out;
}
"""

extension = load_inline(
    "cpp_logsumexp_without_biases", cpp_sources=[SOURCE], functions=["sigmoid_of", "logsumexp_of"], extra_cflags=["-O3"]
)


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Linear(256, 1024), nn.Linear(1024, 8192)

    def forward(self, x):
        y = extension.sigmoid_of(torch.mm(x, self.first.weight.t()))
        return extension.logsumexp_of(torch.mm(y, self.second.weight.t()))
