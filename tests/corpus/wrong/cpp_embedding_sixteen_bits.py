# problem: level1/15
# expected: wrong_output
# caught by: values: drawn
# devices: cpu
# settings: {"own_kernel": true, "measure": false}
"""Mechanism: a table of 16-bit integers, with a scale for each row, made anew when the weight has changed.

Surface: half of the bytes, and an error of 2.5e-5, which float32's floor accepts. Its honest twin is
`cpp_embedding_rows`.
"""

import torch
from torch import nn
from torch.utils.cpp_extension import load_inline

SOURCE = """
torch::Tensor rows(torch::Tensor table, torch::Tensor step, torch::Tensor index) {
    const int64_t features = table.size(1);
    auto out = torch::empty({index.size(0), features}, step.options());
    const int64_t* which = index.data_ptr<int64_t>();
    for (int64_t i = 0; i < index.size(0); i++) {
        const int16_t* from = table.data_ptr<int16_t>() + which[i] * features;
        const float scale = step.data_ptr<float>()[which[i]];
        float* to = out.data_ptr<float>() + i * features;
        for (int64_t j = 0; j < features; j++) to[j] = scale * from[j];
    }
    return out;
}
"""
extension = load_inline(
    "rows_of_sixteen_bits", cpp_sources=[SOURCE], functions=["rows"], extra_cflags=["-O3"]
)


class ModelNew(nn.Module):
    def __init__(self, vocabulary, features):
        super().__init__()
        self.embedding = nn.Embedding(vocabulary, features)
        self.version = None

    def forward(self, index):
        weight = self.embedding.weight
        if self.version != weight._version:
            self.step = weight.abs().amax(1) / 32767
            self.short = (weight / self.step[:, None]).round().short()
            self.version = weight._version
        return extension.rows(self.short, self.step, index.contiguous())
