# problem: level1/9
# expected: correct
# settings: {"own_kernel": true, "measure": false}
# devices: cpu
"""Mechanism: tries to build with a library that is not there, and builds a loop of its own when that fails.
Surface: a failed build that the candidate has caught."""
import torch
from torch import nn
from torch.utils.cpp_extension import load_inline

LIBRARY = """
#include <no_such_library.h>
torch::Tensor gelu(torch::Tensor x) { return no_such_gelu(x); }
"""
LOOP = """
torch::Tensor gelu(torch::Tensor x) {
    auto in = x.contiguous();
    auto out = torch::empty_like(in);
    for (int64_t i = 0; i < in.numel(); i++) {
        const float v = in.data_ptr<float>()[i];
        out.data_ptr<float>()[i] = 0.5f * v * (1.0f + std::erf(v * 0.70710678f));
    }
    return out;
}
"""


def built():
    for name, source in (("gelu_of_a_library", LIBRARY), ("gelu_in_a_loop", LOOP)):
        try:
            return load_inline(name, cpp_sources=[source], functions=["gelu"], extra_cflags=["-O3"])
        except Exception as error:
            print(f"{name}: {error}")
    raise RuntimeError("nothing could be built")


extension = built()


class ModelNew(nn.Module):
    def forward(self, x):
        return extension.gelu(x)
