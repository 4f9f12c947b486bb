# problem: level1/1
# expected: no_custom_kernel
# caught by: own_kernel
# settings: {"own_kernel": true, "measure": false}
# devices: cpu
"""Mechanism: builds an extension that it never calls for the work, and raises whenever its call is traced.

Surface: a check that takes an exception in the traced call for nobody's fault.
"""
import sys

import torch
from torch import nn
from torch.utils.cpp_extension import load_inline

SOURCE = "torch::Tensor leaf(torch::Tensor x) { return x; }"
leaf = load_inline("leaf", cpp_sources=[SOURCE], functions=["leaf"])


class ModelNew(nn.Module):
    def forward(self, x):
        if sys.getprofile() is not None:
            raise ValueError("not now")
        return torch.relu(x)
