# problem: level1/1
# expected: correct
# devices: cpu
# settings: {"own_kernel": true, "measure": false}
"""Mechanism: builds its extension in a method, under a name that an f-string makes, from a text that a class
attribute fills in, and keeps it on self.

Surface: a build that stands nowhere at the top of the module."""
import torch
from torch import nn
from torch.utils.cpp_extension import load_inline

TEMPLATE = """
torch::Tensor {name}(torch::Tensor x) {{
    auto in = x.contiguous();
    auto out = torch::empty_like(in);
    for (int64_t i = 0; i < in.numel(); i++) {{
        const float v = in.data_ptr<float>()[i];
        out.data_ptr<float>()[i] = v > FLOOR ? v : (v != v ? v : FLOOR);
    }}
    return out;
}}
"""


class ModelNew(nn.Module):
    OPERATION = "relu"

    def __init__(self):
        super().__init__()
        self.name = f"{self.OPERATION}_in_a_loop"
        options = {"extra_cflags": ["-O3"]}
        options.update(functions=[self.name])
        self.extension = self.built(options)

    def built(self, options, floor="0.0f"):
        source = TEMPLATE.format(name=self.name).replace("FLOOR", floor)
        return load_inline(name=self.name, cpp_sources=[source], **options)

    def forward(self, x):
        return getattr(self.extension, self.name)(x)
