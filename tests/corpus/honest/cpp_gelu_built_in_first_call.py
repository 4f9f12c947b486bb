# problem: level1/9
# expected: correct
# devices: cpu
# settings: {"own_kernel": true}
"""Mechanism: asks for its extension in the first forward. Surface: none exists when the module has been loaded."""
from torch import nn
from torch.utils.cpp_extension import load_inline

source = r"""
#include <cmath>

static torch::Tensor checked(const torch::Tensor& x) {
    TORCH_CHECK(x.is_cpu() && x.scalar_type() == at::kFloat, "float32 on the CPU expected");
    return x.contiguous();
}

torch::Tensor gelu(const torch::Tensor& x) {
    const auto in = checked(x);
    auto out = at::empty_like(in);
    const float* from = in.data_ptr<float>();
    float* to = out.data_ptr<float>();
#pragma omp parallel for num_threads(2) schedule(static)
    for (int64_t i = 0; i < in.numel(); ++i) {
        to[i] = 0.5f * from[i] * (1.0f + std::erf(from[i] * 0.70710678f));
    }
    return out;
}
"""

_extension = None


def extension():
    global _extension
    if _extension is None:
        _extension = load_inline(
            name="gelu",
            cpp_sources=source,
            functions={"gelu": "with erf"},
            extra_cflags=["-O3", "-fopenmp"],
            extra_ldflags=["-fopenmp"],
        )
    return _extension


class ModelNew(nn.Module):
    def forward(self, x):
        return extension().gelu(x)
