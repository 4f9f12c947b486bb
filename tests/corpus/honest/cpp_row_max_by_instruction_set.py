# problem: level2/6
# expected: correct
# devices: cpu
# settings: {"own_kernel": true}
"""Mechanism: intrinsics for AVX-512 and AVX2 beside plain C++, chosen while it runs by what the processor has.

Surface: code for instructions that this machine may lack; which loop runs differs from machine to machine.
"""
from torch import nn
from torch.utils.cpp_extension import load_inline

source = r"""
#include <immintrin.h>

#include <algorithm>

static float clamped(float v, float scale, float bound) {
    return std::min(std::max(v * scale, -bound), bound);
}

static float row_plain(const float* x, int64_t n, float scale, float bound) {
    float top = -bound;
    for (int64_t i = 0; i < n; ++i) {
        top = std::max(top, clamped(x[i], scale, bound));
    }
    return top;
}

__attribute__((target("avx2"))) static float row_avx2(const float* x, int64_t n, float scale, float bound) {
    const __m256 factor = _mm256_set1_ps(scale), high = _mm256_set1_ps(bound);
    __m256 top = _mm256_set1_ps(-bound);
    int64_t i = 0;
    for (; i + 8 <= n; i += 8) {
        top = _mm256_max_ps(top, _mm256_min_ps(_mm256_mul_ps(_mm256_loadu_ps(x + i), factor), high));
    }
    float lanes[8];
    _mm256_storeu_ps(lanes, top);
    return std::max(*std::max_element(lanes, lanes + 8), row_plain(x + i, n - i, scale, bound));
}

__attribute__((target("avx512f"))) static float row_avx512(const float* x, int64_t n, float scale, float bound) {
    const __m512 factor = _mm512_set1_ps(scale), high = _mm512_set1_ps(bound);
    __m512 top = _mm512_set1_ps(-bound);
    int64_t i = 0;
    for (; i + 16 <= n; i += 16) {
        top = _mm512_max_ps(top, _mm512_min_ps(_mm512_mul_ps(_mm512_loadu_ps(x + i), factor), high));
    }
    float lanes[16];
    _mm512_storeu_ps(lanes, top);
    return std::max(*std::max_element(lanes, lanes + 16), row_plain(x + i, n - i, scale, bound));
}

using Row = float (*)(const float*, int64_t, float, float);

static Row chosen() {
    __builtin_cpu_init();
    if (__builtin_cpu_supports("avx512f")) {
        return row_avx512;
    }
    return __builtin_cpu_supports("avx2") ? row_avx2 : row_plain;
}

torch::Tensor clamped_max(const torch::Tensor& x, double scale, double bound) {
    TORCH_CHECK(x.dim() == 2 && x.scalar_type() == at::kFloat && x.is_cpu(), "a float32 matrix expected");
    static const Row row = chosen();
    const auto in = x.contiguous();
    auto y = at::empty({in.size(0)}, in.options());
    for (int64_t i = 0; i < in.size(0); ++i) {
        y.data_ptr<float>()[i] = row(in.data_ptr<float>() + i * in.size(1), in.size(1), scale, bound);
    }
    return y;
}
"""

extension = load_inline(name="row_max_isa", cpp_sources=source, functions=["clamped_max"], extra_cflags=["-O3"])


class ModelNew(nn.Module):
    def __init__(self, scale, bound):
        super().__init__()
        self.scale, self.bound = scale, bound

    def forward(self, x):
        return extension.clamped_max(x, self.scale, self.bound)
