# problem: level1/2
# expected: correct
# devices: cpu
# settings: {"own_kernel": true, "measure": false}
"""Mechanism: `load` over a folder with headers beside the sources and above them; a name that two sources have.

Surface: each source is compiled by itself, and finds what it includes.
"""
import tempfile
from pathlib import Path

import torch
from torch import nn
from torch.utils.cpp_extension import load

files = {
    "include/softmax.h": r"""
#pragma once
#include <cstdint>
void powers(const float* from, float* to, int64_t columns);
void shares(float* row, int64_t columns);
""",
    "src/vector_of.hpp": "#pragma once\n#include <algorithm>\n#include <cmath>\n#include <numeric>\n",
    "src/powers.cpp": r"""
#include "../include/softmax.h"
#include "vector_of.hpp"

static float part(const float* row, int64_t columns) { return *std::max_element(row, row + columns); }

void powers(const float* from, float* to, int64_t columns) {
    const float top = part(from, columns);
    std::transform(from, from + columns, to, [top](float v) { return std::exp(v - top); });
}
""",
    "src/shares.cpp": r"""
#include "../include/softmax.h"
#include "vector_of.hpp"

static float part(const float* row, int64_t columns) { return std::accumulate(row, row + columns, 0.0); }

void shares(float* row, int64_t columns) {
    const float total = part(row, columns);
    std::transform(row, row + columns, row, [total](float v) { return v / total; });
}
""",
    "bind.cpp": r"""
#include <pybind11/pybind11.h>
#include <softmax.h>

static void softmax(uintptr_t from, uintptr_t to, int64_t rows, int64_t columns) {
    for (int64_t row = 0; row < rows; ++row) {
        float* out = reinterpret_cast<float*>(to) + row * columns;
        powers(reinterpret_cast<const float*>(from) + row * columns, out, columns);
        shares(out, columns);
    }
}

PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) { m.def("softmax", &softmax); }
""",
}

folder = Path(tempfile.mkdtemp())
for name, text in files.items():
    (folder / name).parent.mkdir(exist_ok=True)
    (folder / name).write_text(text)
extension = load(
    name="softmax_tree",
    sources=[str(folder / name) for name in files if name.endswith(".cpp")],
    extra_include_paths=[str(folder / "include")],
    extra_cflags=["-O2"],
)


class ModelNew(nn.Module):
    def forward(self, x):
        x = x.contiguous()
        y = torch.empty_like(x)
        extension.softmax(x.data_ptr(), y.data_ptr(), x.numel() // x.size(-1), x.size(-1))
        return y
