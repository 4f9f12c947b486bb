# problem: level1/1
# expected: correct
# devices: cpu
# settings: {"own_kernel": true, "measure": false}
"""Mechanism: `torch.library.custom_op` in Python around the extension, with a fake for shapes.

Surface: the dispatcher calls back into Python, which calls the extension.
"""
import torch
from torch import nn
from torch.utils.cpp_extension import load_inline

source = r"""
void relu_into(const torch::Tensor& x, torch::Tensor y) {
    TORCH_CHECK(x.is_contiguous() && y.is_contiguous() && x.scalar_type() == at::kFloat, "contiguous float32");
    const float* in = x.data_ptr<float>();
    float* out = y.data_ptr<float>();
    for (int64_t i = 0; i < x.numel(); ++i) {
        out[i] = in[i] < 0.0f ? 0.0f : in[i];
    }
}
"""

extension = load_inline(name="relu_operator", cpp_sources=source, functions=["relu_into"], extra_cflags=["-O3"])


@torch.library.custom_op("kernels_of_mine::relu", mutates_args=())
def relu(x: torch.Tensor) -> torch.Tensor:
    x = x.contiguous()
    y = torch.empty_like(x)
    extension.relu_into(x, y)
    return y


@relu.register_fake
def _(x):
    return torch.empty_like(x, memory_format=torch.contiguous_format)


class ModelNew(nn.Module):
    def forward(self, x):
        return torch.ops.kernels_of_mine.relu(x)
