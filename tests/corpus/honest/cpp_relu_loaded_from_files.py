# problem: level1/1
# expected: correct
# devices: cpu
# settings: {"own_kernel": true, "measure": false}
"""Mechanism: writes its source into a temporary directory and builds it with `load`.

Surface: file access; no load_inline in sight.
"""
import tempfile
from pathlib import Path

from torch import nn
from torch.utils.cpp_extension import load

source = r"""
#include <torch/extension.h>

#include <algorithm>

static torch::Tensor relu(const torch::Tensor& x) {
    TORCH_CHECK(x.is_cpu() && x.scalar_type() == at::kFloat, "float32 on the CPU expected");
    const auto in = x.contiguous();
    auto out = at::empty_like(in);
    const float* from = in.data_ptr<float>();
    std::transform(from, from + in.numel(), out.data_ptr<float>(), [](float v) { return v < 0.0f ? 0.0f : v; });
    return out;
}

PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {
    m.def("relu", &relu, "max(x, 0)");
}
"""

with tempfile.TemporaryDirectory() as folder:
    path = Path(folder, "relu.cpp")
    path.write_text(source)
    extension = load(name="relu_from_a_file", sources=str(path), extra_cflags=["-O3"])


class ModelNew(nn.Module):
    def forward(self, x):
        return extension.relu(x)
