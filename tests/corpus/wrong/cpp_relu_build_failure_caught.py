# problem: level1/1
# expected: build_error
# devices: cpu
# settings: {"own_kernel": true, "measure": false}
"""Mechanism: its extension does not compile, it catches that, and torch does the work.

Surface: a right answer; whoever sees the build, the compilers' message is what helps."""
import torch
from torch import nn
from torch.utils.cpp_extension import load_inline


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        try:
            self.extension = load_inline(
                name="relu_undeclared",
                cpp_sources="torch::Tensor relu_of(torch::Tensor x) { return x.clamp_min(0) }",
                functions=["relu_of"],
            )
        except RuntimeError:
            self.extension = None

    def forward(self, x):
        return torch.relu(x) if self.extension is None else self.extension.relu_of(x)
