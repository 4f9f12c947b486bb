"""The programs that the extraction cases are made of."""

from __future__ import annotations

CUDA = """
#include <torch/extension.h>
__global__ void scale_kernel(const float* x, float* y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) { y[i] = 2.0f * x[i]; }
}
torch::Tensor scale(torch::Tensor x) {
    auto y = torch::empty_like(x);
    scale_kernel<<<(x.numel() + 255) / 256, 256>>>(x.data_ptr<float>(), y.data_ptr<float>(), x.numel());
    return y;
}
"""

IMPORTS = """import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

"""

EXTENSION = f'''cuda_source = r"""{CUDA}"""

ext = load_inline(
    name="scale",
    cpp_sources="torch::Tensor scale(torch::Tensor x);",
    cuda_sources=cuda_source,
    functions=["scale"],
)

'''

CLASS = """
class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()

    def forward(self, x):
        return ext.scale(x)
"""

GOOD = IMPORTS + EXTENSION + CLASS

SECOND = GOOD.replace("2.0f", "3.0f")
"""Another version of GOOD."""

REFERENCE = """import torch
import torch.nn as nn


class Model(nn.Module):
    def forward(self, x):
        return x * 2.0


def get_inputs():
    return [torch.rand(8)]


def get_init_inputs():
    return []
"""


def fence(code: str, info: str = "python", run: str = "```") -> str:
    return f"{run}{info}\n{code}{run}\n"


DIFFICULT = [
    "`",
    "```\n",
    "<think>",
    "</think>\n",
    "<think a='b'>\n```\n",
    "```python\nclass ModelNew:\n```\n",
    "```python\nclass ModelNew:\n    def forward(self, x): return y\n```\nz = 1\n",
    "ModelNew ```\n",
    "import torch\nclass ModelNew: (\n",
    "class ModelNew(",
    "- ```python\n> ModelNew = 1\n",
    '"""' + "'''\u201c",
    "\x1b[",
    '{"ModelNew": [',
    "analysisAssistantfinal<|channel|>a<|message|>ModelNew\n",
    "not ModelNew or - (",
    "ModelNew\n" + "\n" * 50,
    "ModelNew<|channel>thought\n<|im_end|>",
    "cat > f.py << 'EOF'\nModelNew = 1\n",
    "cat > f.py << 'EOF'\nModelNew = 1\nEOF\n",
    "</a><b>ModelNew ]]>",
    "class ModelNew:\nUser: a\n",
    ">{'ModelNew':\n",
    "#include\n```\n",
]
"""Repeated often, each of these is slow for some naive way of looking."""
