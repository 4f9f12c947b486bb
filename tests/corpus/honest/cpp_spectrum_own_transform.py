# problem: spectrum
# expected: correct
# devices: cpu
# settings: {"own_kernel": true, "measure": false}
"""Mechanism: Stockham's transform for powers of two, with a table of roots kept by length; else torch's.

Surface: complex outputs; a table that outlives the call; a fallback that the declared length never takes.
"""
import torch
from torch import nn
from torch.utils.cpp_extension import load_inline

source = r"""
#include <c10/util/complex.h>

#include <cmath>
#include <map>
#include <vector>

using Number = c10::complex<float>;

static const std::vector<Number>& roots(int64_t n) {
    static std::map<int64_t, std::vector<Number>> kept;
    auto& table = kept[n];
    for (int64_t i = table.size(); i < n / 2; ++i) {
        const double angle = -2.0 * 3.14159265358979323846 * i / n;
        table.emplace_back(static_cast<float>(std::cos(angle)), static_cast<float>(std::sin(angle)));
    }
    return table;
}

torch::Tensor transform(const torch::Tensor& x) {
    const auto in = x.contiguous();
    const int64_t n = in.size(-1), rows = in.numel() / n;
    TORCH_CHECK(in.scalar_type() == at::kFloat && (n & (n - 1)) == 0, "a power of two expected");
    auto y = at::empty(in.sizes(), in.options().dtype(at::kComplexFloat));
    const auto& table = roots(n);
    std::vector<Number> here(n), there(n);
    for (int64_t row = 0; row < rows; ++row) {
        const float* from = in.data_ptr<float>() + row * n;
        for (int64_t i = 0; i < n; ++i) {
            here[i] = Number(from[i], 0.0f);
        }
        for (int64_t half = n / 2, stride = 1; half >= 1; half /= 2, stride *= 2) {
            for (int64_t p = 0; p < half; ++p) {
                const Number w = table[p * stride];
                for (int64_t q = 0; q < stride; ++q) {
                    const Number a = here[q + stride * p], b = here[q + stride * (p + half)];
                    there[q + stride * 2 * p] = a + b;
                    there[q + stride * (2 * p + 1)] = (a - b) * w;
                }
            }
            here.swap(there);
        }
        std::copy(here.begin(), here.end(), y.data_ptr<Number>() + row * n);
    }
    return y;
}
"""

extension = load_inline(name="own_transform", cpp_sources=source, functions=["transform"], extra_cflags=["-O3"])


class ModelNew(nn.Module):
    def forward(self, x):
        length = x.shape[-1]
        return extension.transform(x) if length & (length - 1) == 0 else torch.fft.fft(x, dim=1)
