# problem: level1/4
# expected: correct
# devices: cpu
# settings: {"own_kernel": true, "measure": false}
"""Mechanism: blocks of both operands are packed into panels that live on in `thread_local` memory.

Surface: operands copied in parts into memory that outlives the call; sums over K in blocks.
"""
from torch import nn
from torch.utils.cpp_extension import load_inline

source = r"""
#include <algorithm>
#include <vector>

constexpr int64_t ROWS = 64, DEPTH = 128, WIDTH = 64;

torch::Tensor multiply(const torch::Tensor& left, const torch::Tensor& right) {
    TORCH_CHECK(left.dim() == 2 && right.dim() == 2 && left.size(1) == right.size(0), "sizes do not fit");
    TORCH_CHECK(left.scalar_type() == at::kFloat && right.scalar_type() == at::kFloat, "float32 only");
    static thread_local std::vector<float> a(ROWS * DEPTH), b(DEPTH * WIDTH);
    const auto l = left.contiguous(), r = right.contiguous();
    const int64_t m = l.size(0), k = l.size(1), n = r.size(1);
    auto c = at::zeros({m, n}, l.options());
    const float *lp = l.data_ptr<float>(), *rp = r.data_ptr<float>();
    float* cp = c.data_ptr<float>();
    for (int64_t k0 = 0; k0 < k; k0 += DEPTH) {
        const int64_t depth = std::min(DEPTH, k - k0);
        for (int64_t j0 = 0; j0 < n; j0 += WIDTH) {
            const int64_t width = std::min(WIDTH, n - j0);
            for (int64_t p = 0; p < depth; ++p) {
                std::copy_n(rp + (k0 + p) * n + j0, width, b.data() + p * WIDTH);
                std::fill_n(b.data() + p * WIDTH + width, WIDTH - width, 0.0f);
            }
            for (int64_t i0 = 0; i0 < m; i0 += ROWS) {
                const int64_t rows = std::min(ROWS, m - i0);
                for (int64_t i = 0; i < rows; ++i) {
                    std::copy_n(lp + (i0 + i) * k + k0, depth, a.data() + i * DEPTH);
                }
                for (int64_t i = 0; i < rows; ++i) {
                    float sums[WIDTH] = {};
                    for (int64_t p = 0; p < depth; ++p) {
                        const float factor = a[i * DEPTH + p];
                        for (int64_t j = 0; j < WIDTH; ++j) {
                            sums[j] += factor * b[p * WIDTH + j];
                        }
                    }
                    for (int64_t j = 0; j < width; ++j) {
                        cp[(i0 + i) * n + j0 + j] += sums[j];
                    }
                }
            }
        }
    }
    return c;
}
"""

extension = load_inline(name="matmul_panels", cpp_sources=source, functions=["multiply"], extra_cflags=["-O3"])


class ModelNew(nn.Module):
    def forward(self, a, b):
        return extension.multiply(a, b)
