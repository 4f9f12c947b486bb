# problem: max_of_silu
# expected: correct
# devices: cpu
# settings: {"own_kernel": true, "measure": false}
"""Mechanism: torch makes SiLU of a sigmoid and a product; the own function takes the maximum of each window.

Surface: `own_kernel`. A sigmoid could do a comparison's work, but it does that of SiLU here.
"""
import torch
from torch import nn
from torch.utils.cpp_extension import load_inline

source = r"""
torch::Tensor max_of_windows(const torch::Tensor& x) {
    const int64_t planes = x.size(0) * x.size(1), high = x.size(2) / 2, wide = x.size(3) / 2;
    auto result = at::empty({x.size(0), x.size(1), high, wide}, x.options());
    const float* from = x.data_ptr<float>();
    float* to = result.data_ptr<float>();
    for (int64_t plane = 0; plane < planes; ++plane)
        for (int64_t i = 0; i < high; ++i)
            for (int64_t j = 0; j < wide; ++j) {
                const float* at = from + (plane * x.size(2) + 2 * i) * x.size(3) + 2 * j;
                const float upper = std::isnan(at[0]) || at[0] > at[1] ? at[0] : at[1];
                const float* below = at + x.size(3);
                const float lower = std::isnan(below[0]) || below[0] > below[1] ? below[0] : below[1];
                *to++ = std::isnan(upper) || upper > lower ? upper : lower;
            }
    return result;
}
"""

extension = load_inline(
    name="max_of_windows", cpp_sources=source, functions=["max_of_windows"], extra_cflags=["-O2"]
)


class ModelNew(nn.Module):
    def forward(self, x):
        x = x.contiguous()
        return extension.max_of_windows(torch.sigmoid(x) * x)
