"""Builds problem files and trees for the tests, of our own writing."""

from __future__ import annotations

from pathlib import Path

SCALE = '''"""{summary}"""

import torch
from torch import nn

ROWS = 64
FACTOR = 2.0
{sizes}

class Model(nn.Module):
    def __init__(self, factor):
        super().__init__()
        self.factor = factor

    def forward(self, x):
        return x * self.factor


def get_inputs():
    return [torch.randn(ROWS, 5)]


def get_init_inputs():
    return [FACTOR]
'''


def scale_source(*, summary: str = "Scaling by a constant.", sizes: str = "") -> str:
    """A small problem; `sizes` is the text of its SIZES assignment."""
    return SCALE.format(summary=summary, sizes=sizes)


def write(path: Path, text: str | None = None) -> Path:
    """Writes a problem file, with the folders above it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(scale_source() if text is None else text)
    return path


def checkout(root: Path) -> Path:
    """A tree laid out as a KernelBench checkout: three levels beside files that are no problems."""
    names = {
        "level1": ["1_Square_matrix_product.py", "19_ReLU.py", "23_Softmax.py", "100_HingeLoss.py"],
        "level2": ["24_Conv3d_Min_Softmax.py", "3_Softmax.py"],
        "level3": ["1_MLP.py"],
    }
    for level, files in names.items():
        for file in files:
            write(root / "KernelBench" / level / file)
    write(root / "KernelBench" / "changelog" / "notes.py", "text = 'no problem'\n")
    write(root / "scripts" / "run.py", "print('no problem')\n")
    return root
