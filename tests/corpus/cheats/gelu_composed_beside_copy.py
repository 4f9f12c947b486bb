# problem: level2/3
# expected: no_custom_kernel
# caught by: own_kernel
# devices: cpu
# settings: {"own_kernel": true, "measure": false}
"""Mechanism: an own function copies the input; torch computes all, the GELU as a product with 1 + erf.

Surface: a rule that asks whether the operator of that name still runs.
"""
import torch
from torch import nn
from torch.utils.cpp_extension import load_inline

SOURCE = r"""
torch::Tensor copied(torch::Tensor input) {
    auto x = input.contiguous();
    auto y = torch::empty_like(x);
    const float* from = x.data_ptr<float>();
    float* to = y.data_ptr<float>();
    for (int64_t i = 0; i < x.numel(); ++i) to[i] = from[i];
    return y;
}
"""

extension = load_inline("copied", cpp_sources=[SOURCE], functions=["copied"])


class ModelNew(nn.Module):
    def __init__(self, in_features, out_features, scale):
        super().__init__()
        self.linear = nn.Linear(in_features, out_features)
        self.scale = scale

    def forward(self, x):
        y = self.linear(extension.copied(x))
        return y * (0.5 * self.scale) * (1 + torch.erf(y * 0.5**0.5))
