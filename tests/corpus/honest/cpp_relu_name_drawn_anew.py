# problem: level1/1
# expected: correct
# devices: cpu
# settings: {"own_kernel": true, "measure": false}
"""Mechanism: names its extension by a random number, so that builds of an earlier run cannot be in the way.

Surface: no two processes ask for the same extension, so a build that was made ahead is not the one asked for.
"""
import uuid

from torch import nn
from torch.utils.cpp_extension import load_inline

source = r"""
torch::Tensor relu(const torch::Tensor& x) {
    const auto in = x.contiguous();
    auto y = at::empty_like(in);
    for (int64_t i = 0; i < in.numel(); ++i) {
        y.data_ptr<float>()[i] = in.data_ptr<float>()[i] < 0.0f ? 0.0f : in.data_ptr<float>()[i];
    }
    return y;
}
"""

extension = load_inline(
    name=f"relu_{uuid.uuid4().hex}", cpp_sources=source, functions=["relu"], extra_cflags=["-O3"]
)


class ModelNew(nn.Module):
    def forward(self, x):
        return extension.relu(x)
