# problem: level1/1
# expected: correct
# devices: cpu
# settings: {"own_kernel": true}
"""Mechanism: an own function in every call, and a count of its callers by the stack, for a message.

Surface: looks at the stack and at the profiler as cheats/torch_where_times_are_taken does.
"""
import sys
from collections import Counter

import torch
from torch import nn
from torch.autograd.profiler import record_function
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

extension = load_inline("relu_counted", cpp_sources=[SOURCE], functions=["relu"])


class ModelNew(nn.Module):
    callers = Counter()

    def forward(self, x):
        self.callers[sys._getframe(1).f_code.co_name] += 1
        if not torch.autograd._profiler_enabled():
            return extension.relu(x)
        with record_function("relu_counted"):
            return extension.relu(x)
