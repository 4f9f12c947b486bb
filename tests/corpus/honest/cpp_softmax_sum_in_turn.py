# problem: level1/2
# expected: correct
# settings: {"own_kernel": true, "measure": false}
# devices: cpu
"""Mechanism: the softmax of every textbook, its sum in float32 and in turn.

Surface: where nine of ten inputs are zero most terms are equal, and rounding errors of one sign add up.
"""
import torch
from torch import nn
from torch.utils.cpp_extension import load_inline

SOURCE = """
torch::Tensor softmax(torch::Tensor x) {
    auto in = x.contiguous();
    auto out = torch::empty_like(in);
    const int64_t rows = in.size(0), columns = in.size(1);
    for (int64_t i = 0; i < rows; i++) {
        const float* from = in.data_ptr<float>() + i * columns;
        float* to = out.data_ptr<float>() + i * columns;
        float most = -INFINITY, sum = 0.0f;
        for (int64_t j = 0; j < columns; j++) most = std::max(most, from[j]);
        for (int64_t j = 0; j < columns; j++) sum += to[j] = std::exp(from[j] - most);
        for (int64_t j = 0; j < columns; j++) to[j] /= sum;
    }
    return out;
}
"""
extension = load_inline("softmax_in_turn", cpp_sources=[SOURCE], functions=["softmax"], extra_cflags=["-O3"])


class ModelNew(nn.Module):
    def forward(self, x):
        return extension.softmax(x)
