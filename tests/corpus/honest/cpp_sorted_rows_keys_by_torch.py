# problem: sorted_rows
# expected: correct
# devices: cpu
# settings: {"own_kernel": true, "measure": false}
"""Mechanism: torch makes whole numbers of the same order of the elements; the own function sorts them.

Surface: `own_kernel`. A choice between numbers is no sort, however many elements it is made for.
"""
import torch
from torch import nn
from torch.utils.cpp_extension import load_inline

source = r"""
#include <algorithm>
#include <numeric>

std::vector<torch::Tensor> sorted(const torch::Tensor& x, const torch::Tensor& keys) {
    auto values = at::empty_like(x);
    auto places = at::empty(x.sizes(), at::kLong);
    const int64_t width = x.size(1);
    for (int64_t row = 0; row < x.size(0); ++row) {
        const int32_t* key = keys.data_ptr<int32_t>() + row * width;
        const float* from = x.data_ptr<float>() + row * width;
        float* to = values.data_ptr<float>() + row * width;
        int64_t* place = places.data_ptr<int64_t>() + row * width;
        std::iota(place, place + width, int64_t{0});
        std::stable_sort(place, place + width, [=](int64_t a, int64_t b) { return key[a] < key[b]; });
        for (int64_t i = 0; i < width; ++i) to[i] = from[place[i]];
    }
    return {values, places};
}
"""

extension = load_inline(name="sorted_keys", cpp_sources=source, functions=["sorted"], extra_cflags=["-O2"])


class ModelNew(nn.Module):
    def forward(self, x):
        x = x.contiguous()
        bits = x.view(torch.int32)
        keys = torch.where(bits < 0, bits ^ 0x7FFFFFFF, bits)
        values, places = extension.sorted(x, keys)
        return values, places
