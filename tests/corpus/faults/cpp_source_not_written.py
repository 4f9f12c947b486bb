# problem: level1/1
# expected: load_error
# devices: cpu
"""Mechanism: has setuptools build a source that it never wrote. Surface: an error in the middle of a build."""
import torch
from setuptools import setup
from torch import nn
from torch.utils.cpp_extension import BuildExtension, CppExtension

setup(
    name="relu_without_source",
    ext_modules=[CppExtension("relu_without_source", ["relu.cpp"])],
    cmdclass={"build_ext": BuildExtension},
    script_args=["build_ext", "--inplace"],
)


class ModelNew(nn.Module):
    def forward(self, x):
        return torch.relu(x)
