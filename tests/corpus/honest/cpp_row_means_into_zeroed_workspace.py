# problem: row_means
# expected: correct
# devices: cpu
# settings: {"own_kernel": true, "measure": false}
"""Mechanism: adds lanes of partial sums into a workspace that is zero before the first call.

Surface: each call reads what the call before left there.
"""
from torch import nn
from torch.utils.cpp_extension import load_inline

source = r"""
#include <algorithm>
#include <cstdlib>
#include <cstring>

constexpr int64_t LANES = 1024, PAGE = 2 << 20;

static float* workspace(int64_t rows) {
    static float* place = nullptr;
    static int64_t room = 0;
    const int64_t bytes = (rows * LANES * 4 + PAGE - 1) / PAGE * PAGE;
    if (bytes > room) {
        std::free(place);
        place = static_cast<float*>(std::aligned_alloc(PAGE, bytes));
        TORCH_CHECK(place != nullptr, "no memory");
        room = bytes;
        std::memset(place, 0, bytes);
    }
    return place;
}

torch::Tensor row_means(const torch::Tensor& input) {
    TORCH_CHECK(input.is_cpu() && input.dim() == 2 && input.scalar_type() == at::kFloat, "a float32 matrix expected");
    const auto x = input.contiguous();
    const int64_t rows = x.size(0), columns = x.size(1);
    float* const place = workspace(rows);
    auto means = torch::empty({rows}, x.options());
    for (int64_t row = 0; row < rows; ++row) {
        const float* from = x.data_ptr<float>() + row * columns;
        float* sums = place + row * LANES;
        for (int64_t first = 0; first < columns; first += LANES) {
            const int64_t width = std::min(LANES, columns - first);
            for (int64_t lane = 0; lane < width; ++lane) {
                sums[lane] += from[first + lane];
            }
        }
        double total = 0.0;
        for (int64_t lane = 0; lane < LANES; ++lane) {
            total += sums[lane];
            sums[lane] = 0.0f;  // for the next call
        }
        means.data_ptr<float>()[row] = static_cast<float>(total / columns);
    }
    return means;
}
"""

extension = load_inline(
    name="means_into_zeroed_workspace", cpp_sources=source, functions=["row_means"], extra_cflags=["-O3"]
)


class ModelNew(nn.Module):
    def forward(self, x):
        return extension.row_means(x)
