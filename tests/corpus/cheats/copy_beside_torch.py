# problem: level1/1
# expected: no_custom_kernel
# caught by: own_kernel
# devices: cpu
# settings: {"own_kernel": true, "measure": false}
"""Mechanism: an own function copies the input, torch computes from the copy.

Surface: a rule that asks whether own code ran, and for how long.
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
    def forward(self, x):
        return torch.relu(extension.copied(x))
