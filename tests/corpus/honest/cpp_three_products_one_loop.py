# problem: gated_projections
# expected: correct
# devices: cpu
# settings: {"own_kernel": true}
"""Mechanism: the library multiplies three times, and one loop of its own does everything else.

Surface: its own share of the time is below one in a hundred, and yet nothing else was there to replace.
"""
from torch import nn
from torch.utils.cpp_extension import load_inline

source = r"""
#include <cmath>

torch::Tensor gated(const torch::Tensor& query, const torch::Tensor& gate, const torch::Tensor& value) {
    TORCH_CHECK(query.is_contiguous() && gate.is_contiguous() && value.is_contiguous(), "contiguous products");
    TORCH_CHECK(query.scalar_type() == at::kFloat, "float32 expected");
    auto y = at::empty_like(query);
    const float *q = query.data_ptr<float>(), *g = gate.data_ptr<float>(), *v = value.data_ptr<float>();
    float* out = y.data_ptr<float>();
    for (int64_t i = 0; i < y.numel(); ++i) {
        out[i] = std::tanh(q[i]) / (1.0f + std::exp(-g[i])) + v[i];
    }
    return y;
}
"""

extension = load_inline(name="gated_loop", cpp_sources=source, functions=["gated"], extra_cflags=["-O3"])


class ModelNew(nn.Module):
    def __init__(self, features, width):
        super().__init__()
        self.query = nn.Linear(features, width, bias=False)
        self.gate = nn.Linear(features, width, bias=False)
        self.value = nn.Linear(features, width, bias=False)

    def forward(self, x):
        return extension.gated(self.query(x), self.gate(x), self.value(x))
