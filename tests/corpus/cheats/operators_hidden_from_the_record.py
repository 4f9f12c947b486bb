# problem: level1/1
# expected: no_custom_kernel
# caught by: own_kernel
# devices: cpu
# settings: {"own_kernel": true, "measure": false}
# armed by: _enable_record_function
"""Mechanism: torch computes while it is told to record no operators; an own function returns its argument.

Surface: the profiler is the only one that sees operators, and any line of Python switches them off.
"""
import sys
from functools import cache

import torch
from torch import nn
from torch.utils.cpp_extension import load_inline

SOURCE = "torch::Tensor same(torch::Tensor x) { return x; }"
extension = load_inline("same", cpp_sources=[SOURCE], functions=["same"])


@cache
def armed(by):
    print("armed by:", by, file=sys.stderr)


class ModelNew(nn.Module):
    def forward(self, x):
        torch._C._autograd._enable_record_function(False)
        armed("_enable_record_function")
        y = torch.relu(x)
        torch._C._autograd._enable_record_function(True)
        return extension.same(y)
