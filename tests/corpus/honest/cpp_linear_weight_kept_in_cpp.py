# problem: level2/4
# expected: correct
# devices: cpu
# settings: {"own_kernel": true, "measure": false}
"""Mechanism: a table in C++ from a weight's address and version to its transposed copy.

Surface: the same table by address as a replaying cheat's, but of weights, and it asks for the version.
"""
from torch import nn
from torch.utils.cpp_extension import load_inline

source = r"""
#include <map>
#include <utility>

static torch::Tensor transposed(const torch::Tensor& weight) {
    using Key = std::pair<const void*, int64_t>;
    static std::map<Key, torch::Tensor> kept;
    const Key key{weight.data_ptr(), weight._version()};
    auto found = kept.find(key);
    if (found == kept.end()) {
        kept.clear();  // of one layer, only the newest weight
        found = kept.emplace(key, weight.detach().t().contiguous()).first;
    }
    return found->second;
}

torch::Tensor layer(const torch::Tensor& x, const torch::Tensor& weight, const torch::Tensor& bias,
                    const torch::Tensor& residual) {
    const auto in = x.contiguous(), rest = residual.contiguous(), columns = transposed(weight);
    const int64_t rows = in.size(0), depth = columns.size(0), width = columns.size(1);
    auto y = bias.detach().repeat({rows, 1});
    const float *a = in.data_ptr<float>(), *w = columns.data_ptr<float>(), *r = rest.data_ptr<float>();
    for (int64_t i = 0; i < rows; ++i) {
        float* out = y.data_ptr<float>() + i * width;
        for (int64_t k = 0; k < depth; ++k) {
            for (int64_t j = 0; j < width; ++j) {
                out[j] += a[i * depth + k] * w[k * width + j];
            }
        }
        for (int64_t j = 0; j < width; ++j) {
            out[j] = (out[j] < 0.0f ? 0.0f : out[j]) + r[i * width + j];
        }
    }
    return y;
}
"""

extension = load_inline(name="linear_kept", cpp_sources=source, functions=["layer"], extra_cflags=["-O3"])


class ModelNew(nn.Module):
    def __init__(self, features):
        super().__init__()
        self.linear = nn.Linear(features, features)

    def forward(self, x, residual):
        return extension.layer(x, self.linear.weight, self.linear.bias, residual)
