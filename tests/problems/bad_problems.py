"""Problems with one fault each: the classes of a table, and the files in `bad/`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from textwrap import indent

from tests.problems.trees import write

FILES = Path(__file__).parent / "bad"
"""Those that the documentation or other tests read where they lie."""

SOURCE = """import os
import random

import torch
from torch import nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
{init}

    def forward(self, {parameters}):
{forward}


def get_inputs():
    return [{inputs}]


def get_init_inputs():
    return []
"""


@dataclass(frozen=True)
class Bad:
    forward: str
    inputs: str = "torch.randn(7, 9)"
    init: str = ""
    parameters: str = "x"

    @property
    def source(self) -> str:
        eight = " " * 8
        return SOURCE.format(
            init=indent(self.init, eight),
            parameters=self.parameters,
            forward=indent(self.forward, eight),
            inputs=self.inputs,
        )


WEIGHT = "self.weight = nn.Parameter(torch.randn(9))"
FIRST_IS_LARGEST = "offset = torch.zeros_like(x)\noffset[:, 0] = 100.0\n"
TABLE = {
    "all_zeros": Bad("return torch.relu(-x.abs())"),
    "softmax_of_one": Bad("return torch.softmax(x, dim=1)", "torch.randn(7, 1, 9)"),
    "same_class": Bad(FIRST_IS_LARGEST + "return torch.argmax(x + offset, dim=1)"),
    "weights_only": Bad("return self.weight + 1e-9 * x", init=WEIGHT),
    "second_is_weights": Bad("return x * self.weight, torch.tanh(self.weight)", init=WEIGHT),
    "fixed_inputs": Bad("return torch.tanh(x)", "torch.linspace(-1, 1, 63)"),
    "unused_input": Bad("return torch.tanh(x)", "torch.randn(7, 9), torch.randn(7, 9)", parameters="x, y"),
    "unused_constant_input": Bad(
        "return torch.tanh(x)", "torch.randn(7, 9), torch.arange(7)", parameters="x, lengths"
    ),
    "unused_weight": Bad(
        "return torch.tanh(self.used(x))", init="self.used, self.unused = nn.Linear(9, 9), nn.Linear(9, 9)"
    ),
    "few_huge": Bad("return torch.exp(12 * x)", "torch.randn(101, 9)"),
    "means_of_positive": Bad("return x.mean(dim=1).bfloat16()", "torch.rand(31, 400)"),
    "dropout": Bad("return self.dropout(x)", init="self.dropout = nn.Dropout(0.5)"),
    "stateful": Bad("self.calls += 1\nreturn x * self.calls", init="self.calls = 0"),
    "unstable_weights": Bad(
        "return x * self.weight",
        init="self.weight = nn.Parameter(torch.tensor(random.SystemRandom().random()))",
    ),
    "mutated_input": Bad("return x.mul_(2.0)"),
    "not_finite": Bad("return torch.log(x)"),
    "no_output": Bad("torch.tanh(x)"),
    "empty_output": Bad("return x[:0]"),
    "raises": Bad("return x @ x"),
    "too_big": Bad("return torch.ones(1 << 46) * x", "torch.randn(1)"),
    "crashes": Bad("os.abort()"),
    "leaves": Bad("os._exit(0)"),
    "hangs": Bad("while True:\n    pass"),
}
NAMES = {*TABLE, *(path.stem for path in FILES.glob("*.py"))}


def bad_problem(name: str, folder: Path) -> Path:
    """The file of a bad problem, written into `folder` if it is one of the table."""
    if name in TABLE:
        return write(folder / f"{name}.py", TABLE[name].source)
    return FILES / f"{name}.py"
