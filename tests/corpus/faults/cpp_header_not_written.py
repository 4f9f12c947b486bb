# problem: level1/1
# expected: build_error
# devices: cpu
"""Mechanism: names an include path of its own, and includes a header that it never wrote.

Surface: what is missing must not be looked for on the host.
"""
import tempfile

from torch import nn
from torch.utils.cpp_extension import load_inline

extension = load_inline(
    name="relu_without_header",
    cpp_sources='#include "own_relu.h"\ntorch::Tensor relu(torch::Tensor x) { return own_relu(x); }',
    functions="relu",
    extra_include_paths=[tempfile.mkdtemp()],
)


class ModelNew(nn.Module):
    def forward(self, x):
        return extension.relu(x)
