# problem: level1/1
# expected: no_custom_kernel
# caught by: own_kernel
# devices: cpu
# settings: {"own_kernel": true}
"""Mechanism: its own function for twenty calls, torch's afterwards.

Surface: a look at one call to learn whose kernels run, before the calls that are timed.
"""
import torch
from torch import nn
from torch.utils.cpp_extension import load_inline

SOURCE = r"""
torch::Tensor relu(torch::Tensor input) {
    auto x = input.contiguous();
    auto y = torch::empty_like(x);
    const float* from = x.data_ptr<float>();
    float* to = y.data_ptr<float>();
    for (int64_t i = 0; i < x.numel(); ++i)
        to[i] = from[i] > 0.0f || from[i] != from[i] ? from[i] : 0.0f;
    return y;
}
"""

extension = load_inline("plain_relu", cpp_sources=[SOURCE], functions=["relu"])


class ModelNew(nn.Module):
    calls = 0

    def forward(self, x):
        self.calls += 1
        return extension.relu(x) if self.calls <= 20 else torch.relu(x)
