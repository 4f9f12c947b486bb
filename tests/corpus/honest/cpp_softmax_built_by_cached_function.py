# problem: level1/2
# expected: correct
# devices: cpu
# settings: {"own_kernel": true, "measure": false}
"""Mechanism: a function behind functools.cache builds from locals, flags and a name that a class holds.

Surface: neither the module nor the constructor asks for a build, and its arguments are no plain constants.
"""
import functools

from torch import nn
from torch.utils import cpp_extension

HEAD = "#include <cmath>\n"
BODY = r"""
torch::Tensor softmax(const torch::Tensor& x) {
    const auto in = x.contiguous();
    auto y = at::empty_like(in);
    const int64_t columns = in.size(-1);
    for (int64_t row = 0; row < in.numel() / columns; ++row) {
        const float* from = in.data_ptr<float>() + row * columns;
        float* to = y.data_ptr<float>() + row * columns;
        float top = -INFINITY;
        for (int64_t i = 0; i < columns; ++i) {
            top = std::fmax(top, from[i]);
        }
        double sum = 0.0;
        for (int64_t i = 0; i < columns; ++i) {
            sum += to[i] = std::exp(from[i] - top);
        }
        const float factor = static_cast<float>(1.0 / sum);
        for (int64_t i = 0; i < columns; ++i) {
            to[i] *= factor;
        }
    }
    return y;
}
"""


class Options:
    name = "softmax_cached"
    flags = ("-O3",)


@functools.cache
def kernels(options=Options):
    pieces = [HEAD, BODY]
    flags = list(options.flags)
    return cpp_extension.load_inline(
        options.name, "".join(pieces), functions=["softmax"], extra_cflags=flags, verbose=False
    )


class ModelNew(nn.Module):
    def forward(self, x):
        return kernels().softmax(x)
