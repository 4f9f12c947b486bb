# problem: level1/1
# expected: no_custom_kernel
# caught by: own_kernel
# settings: {"own_kernel": true, "measure": false}
# devices: cpu
"""Mechanism: stops the profiler that records its call; an own function was called before.

Surface: a record that cannot be read is taken for a fault of the machine, and what was built is enough then.
"""
import torch
from torch import nn
from torch.utils.cpp_extension import load_inline

SOURCE = "torch::Tensor same(torch::Tensor x) { return x; }"
extension = load_inline("same", cpp_sources=[SOURCE], functions=["same"])


class ModelNew(nn.Module):
    def forward(self, x):
        x = extension.same(x)
        try:
            torch._C._autograd._disable_profiler()
        except RuntimeError:  # nothing records this call
            pass
        return torch.relu(x)
