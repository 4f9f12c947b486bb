# problem: level1/1
# expected: correct
# devices: cpu
# settings: {"own_kernel": true, "measure": false}
"""Mechanism: `CppExtension` and `BuildExtension`, built in place by setuptools, imported as any module.

Surface: nothing is loaded through torch.utils.cpp_extension.
"""
import os
import sys
import tempfile
from pathlib import Path

import torch
from setuptools import setup
from torch import nn
from torch.utils.cpp_extension import BuildExtension, CppExtension

folder = Path(tempfile.mkdtemp())
(folder / "relu.h").write_text("#include <cstdint>\nvoid relu(uintptr_t from, uintptr_t to, int64_t count);\n")
(folder / "relu.cpp").write_text(r"""
#include "relu.h"

void relu(uintptr_t from, uintptr_t to, int64_t count) {
    const float* in = reinterpret_cast<const float*>(from);
    for (int64_t i = 0; i < count; ++i) {
        reinterpret_cast<float*>(to)[i] = in[i] < LEAST ? LEAST : in[i];
    }
}
""")
(folder / "bind.cpp").write_text(r"""
#include <pybind11/pybind11.h>
#include "relu.h"

PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) { m.def("relu", &relu, DOC); }
""")

before = os.getcwd()
os.chdir(folder)
setup(
    name="relu_by_setuptools",
    ext_modules=[
        CppExtension(
            "relu_by_setuptools",
            ["relu.cpp", "bind.cpp"],
            define_macros=[("LEAST", "0.0f"), ("DOC", '"max(x, 0)"')],
            extra_compile_args=["-O3"],
        )
    ],
    cmdclass={"build_ext": BuildExtension},
    script_args=["build_ext", "--inplace"],
)
os.chdir(before)
sys.path.insert(0, str(folder))

import relu_by_setuptools as extension


class ModelNew(nn.Module):
    def forward(self, x):
        x = x.contiguous()
        y = torch.empty_like(x)
        extension.relu(x.data_ptr(), y.data_ptr(), x.numel())
        return y
