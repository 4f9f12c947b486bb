# problem: scaled_error
# expected: correct
# devices: cpu
# settings: {"own_kernel": true, "measure": false}
"""Mechanism: aligned memory of its own that grows as needed and stays, filled anew in each call.

Surface: memory that torch never hands out lives on between calls and holds values of earlier inputs.
"""
from torch import nn
from torch.utils.cpp_extension import load_inline

source = r"""
#include <cmath>
#include <cstdlib>

static double* workspace(int64_t count) {
    static double* place = nullptr;
    static int64_t room = 0;
    if (count > room) {
        std::free(place);
        room = (count + 7) / 8 * 8;
        place = static_cast<double*>(std::aligned_alloc(64, room * sizeof(double)));
        TORCH_CHECK(place != nullptr, "no memory");
    }
    return place;
}

torch::Tensor scaled_error(const torch::Tensor& x, const torch::Tensor& y) {
    TORCH_CHECK(x.sizes() == y.sizes() && x.dim() == 2 && x.scalar_type() == at::kFloat, "two float32 matrices");
    const auto left = x.contiguous(), right = y.contiguous();
    const int64_t rows = left.size(0), columns = left.size(1);
    double* sums = workspace(rows);
    for (int64_t i = 0; i < rows; ++i) {
        const float *a = left.data_ptr<float>() + i * columns, *b = right.data_ptr<float>() + i * columns;
        sums[i] = 0.0;
        for (int64_t j = 0; j < columns; ++j) {
            sums[i] += std::fabs(a[j] - b[j]);
        }
    }
    double total = 0.0;
    for (int64_t i = 0; i < rows; ++i) {
        total += sums[i];
    }
    return at::full({}, total / (rows * columns), left.options());
}
"""

extension = load_inline(name="scaled_error", cpp_sources=source, functions=["scaled_error"], extra_cflags=["-O3"])


class ModelNew(nn.Module):
    def forward(self, x, y):
        return extension.scaled_error(x, y)
