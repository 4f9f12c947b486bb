"""A problem to start from: `kernelproof problems new FILE` writes it."""

from __future__ import annotations

from pathlib import Path

from kernelproof.errors import UsageError, writing

TEMPLATE = '''\
"""One line that says what the model computes: models read it in their prompt."""

import torch
from torch import nn

ROWS = 4096
WIDTH = 2048

SIZES = {  # values of the constants above; small for a CPU, with odd sizes
    "full": {"ROWS": 4096, "WIDTH": 2048},
    "small": {"ROWS": 131, "WIDTH": 67},
}


class Model(nn.Module):
    """The reference: put your module's code here, with everything that it needs from your other files."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.linear = nn.Linear(width, 2 * width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """x: (rows, width), float32. Returns the same shape."""
        a, b = self.linear(x).chunk(2, dim=-1)
        return nn.functional.silu(a) * b


def get_inputs():
    """The arguments of forward, drawn anew for each trial: no seed, no device."""
    return [torch.randn(ROWS, WIDTH)]


def get_init_inputs():
    """The arguments of Model."""
    return [WIDTH]
'''


def write_template(path: Path) -> None:
    """Writes a problem that runs, with the folders that lead to it.

    Raises UsageError where `path` is there already or does not end in .py, MachineError where it cannot be
    written.
    """
    if path.suffix != ".py" or path.name.startswith("_"):
        raise UsageError(f"{path} is no name of a problem; give one such as mine/level1/1_gated_unit.py")
    with writing(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            with path.open("x", encoding="utf-8") as file:
                file.write(TEMPLATE)
        except FileExistsError:
            raise UsageError(f"{path} is there already; give another name") from None
