# problem: level1/3
# expected: correct
# devices: cpu
# settings: {"own_kernel": true, "measure": false}
"""Mechanism: writes its source when `__init__` knows the width, which becomes a constant of the program.

Surface: nobody can foresee the source by reading; each width asks for an extension of its own.
"""
import torch
from torch import nn
from torch.utils.cpp_extension import load_inline

TEMPLATE = r"""
#include <cmath>

constexpr int64_t FEATURES = @FEATURES@;

torch::Tensor layer_norm(const torch::Tensor& x, const torch::Tensor& w, const torch::Tensor& b, double eps) {
    TORCH_CHECK(x.scalar_type() == at::kFloat && x.size(-1) == FEATURES, "rows of @FEATURES@ float32 expected");
    const auto in = x.contiguous();
    auto y = at::empty_like(in);
    const float *weight = w.data_ptr<float>(), *bias = b.data_ptr<float>();
    for (int64_t row = 0; row < in.numel() / FEATURES; ++row) {
        const float* from = in.data_ptr<float>() + row * FEATURES;
        float* to = y.data_ptr<float>() + row * FEATURES;
        double sum = 0.0, squares = 0.0;
        for (int64_t i = 0; i < FEATURES; ++i) {
            sum += from[i];
        }
        const double mean = sum / FEATURES;
        for (int64_t i = 0; i < FEATURES; ++i) {
            squares += (from[i] - mean) * (from[i] - mean);
        }
        const float factor = static_cast<float>(1.0 / std::sqrt(squares / FEATURES + eps));
        for (int64_t i = 0; i < FEATURES; ++i) {
            to[i] = (from[i] - static_cast<float>(mean)) * factor * weight[i] + bias[i];
        }
    }
    return y;
}
"""


class ModelNew(nn.Module):
    def __init__(self, features):
        super().__init__()
        self.norm = nn.LayerNorm(features)
        nn.init.normal_(self.norm.weight)
        nn.init.normal_(self.norm.bias)
        source = TEMPLATE.replace("@FEATURES@", str(features))
        self.extension = load_inline(
            name=f"layer_norm_{features}", cpp_sources=source, functions=["layer_norm"], extra_cflags=["-O3"]
        )

    def forward(self, x):
        with torch.no_grad():
            return self.extension.layer_norm(x, self.norm.weight, self.norm.bias, self.norm.eps)
