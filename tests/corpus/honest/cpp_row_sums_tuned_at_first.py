# problem: level1/10
# expected: correct
# devices: cpu
# settings: {"own_kernel": true}
"""Mechanism: two loops of its own; the first call of a shape times both with a clock and keeps the faster.

Surface: a C++ clock, more work in the first call than in later ones, and a table by shape.
"""
from torch import nn
from torch.utils.cpp_extension import load_inline

source = r"""
#include <algorithm>
#include <chrono>
#include <map>
#include <tuple>

using Loop = void (*)(const float*, float*, int64_t, int64_t);

static void by_rows(const float* x, float* y, int64_t rows, int64_t columns) {
    std::fill_n(y, columns, 0.0f);
    for (int64_t r = 0; r < rows; ++r) {
        for (int64_t c = 0; c < columns; ++c) {
            y[c] += x[r * columns + c];
        }
    }
}

static void by_strips(const float* x, float* y, int64_t rows, int64_t columns) {
    for (int64_t first = 0; first < columns; first += 16) {
        const int64_t width = std::min<int64_t>(16, columns - first);
        float sums[16] = {};
        for (int64_t r = 0; r < rows; ++r) {
            for (int64_t c = 0; c < width; ++c) {
                sums[c] += x[r * columns + first + c];
            }
        }
        std::copy_n(sums, width, y + first);
    }
}

static double seconds(Loop loop, const float* x, float* y, int64_t rows, int64_t columns) {
    const auto begin = std::chrono::steady_clock::now();
    loop(x, y, rows, columns);
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

torch::Tensor column_sums(const torch::Tensor& x) {
    TORCH_CHECK(x.dim() == 3 && x.scalar_type() == at::kFloat, "three dimensions of float32");
    static std::map<std::tuple<int64_t, int64_t, int64_t>, Loop> tuned;
    const auto in = x.contiguous();
    const int64_t batch = in.size(0), rows = in.size(1), columns = in.size(2);
    auto y = at::empty({batch, 1, columns}, in.options());
    const float* from = in.data_ptr<float>();
    float* to = y.data_ptr<float>();
    Loop& loop = tuned[{batch, rows, columns}];
    if (loop == nullptr) {
        const bool strips = seconds(by_strips, from, to, rows, columns) < seconds(by_rows, from, to, rows, columns);
        loop = strips ? by_strips : by_rows;
    }
    for (int64_t i = 0; i < batch; ++i) {
        loop(from + i * rows * columns, to + i * columns, rows, columns);
    }
    return y;
}
"""

extension = load_inline(name="tuned_sums", cpp_sources=source, functions=["column_sums"], extra_cflags=["-O3"])


class ModelNew(nn.Module):
    def __init__(self, dim):
        super().__init__()
        assert dim == 1

    def forward(self, x):
        return extension.column_sums(x)
