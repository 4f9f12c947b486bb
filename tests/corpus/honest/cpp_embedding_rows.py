# problem: level1/15
# expected: correct
# devices: cpu
# settings: {"own_kernel": true, "measure": false}
"""Mechanism: rows of the float32 table, copied one after another.

Surface: the program that a table of 16-bit integers would halve the bytes of.
"""

import torch
from torch import nn
from torch.utils.cpp_extension import load_inline

SOURCE = """
torch::Tensor rows(torch::Tensor table, torch::Tensor index) {
    const int64_t features = table.size(1);
    auto out = torch::empty({index.size(0), features}, table.options());
    const int64_t* which = index.data_ptr<int64_t>();
    for (int64_t i = 0; i < index.size(0); i++) {
        const float* from = table.data_ptr<float>() + which[i] * features;
        std::copy(from, from + features, out.data_ptr<float>() + i * features);
    }
    return out;
}
"""
extension = load_inline("rows_of_a_table", cpp_sources=[SOURCE], functions=["rows"], extra_cflags=["-O3"])


class ModelNew(nn.Module):
    def __init__(self, vocabulary, features):
        super().__init__()
        self.embedding = nn.Embedding(vocabulary, features)

    def forward(self, index):
        return extension.rows(self.embedding.weight, index.contiguous())
