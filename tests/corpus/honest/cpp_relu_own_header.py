# problem: level1/1
# expected: correct
# devices: cpu
# settings: {"own_kernel": true, "measure": false}
"""Mechanism: `load_inline` with an include path of its own, for a header that it writes first.

Surface: the compilers see nothing that a candidate wrote, so the header has to reach them.
"""
import tempfile
from pathlib import Path

from torch import nn
from torch.utils.cpp_extension import load_inline

folder = Path(tempfile.mkdtemp())
(folder / "relu").mkdir()
(folder / "relu" / "least.h").write_text("#pragma once\nconstexpr float least = 0.0f;\n")
(folder / "relu" / "one.h").write_text(
    '#pragma once\n#include "least.h"\ninline float one(float v) { return v < least ? least : v; }\n'
)

source = r"""
#include <relu/one.h>

#include <algorithm>

torch::Tensor relu(const torch::Tensor& x) {
    TORCH_CHECK(x.is_cpu() && x.scalar_type() == at::kFloat, "float32 on the CPU expected");
    const auto in = x.contiguous();
    auto out = at::empty_like(in);
    const float* from = in.data_ptr<float>();
    std::transform(from, from + in.numel(), out.data_ptr<float>(), one);
    return out;
}
"""

extension = load_inline(
    name="relu_own_header",
    cpp_sources=source,
    functions="relu",
    extra_cflags=["-O3"],
    extra_include_paths=[str(folder)],
)


class ModelNew(nn.Module):
    def forward(self, x):
        return extension.relu(x)
