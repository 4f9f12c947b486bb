"""`kernelproof problems list` on terminals and in pipes."""

from __future__ import annotations

from pathlib import Path

import pytest

from kernelproof.cli.problems import list_problems
from tests.problems.trees import write
from tests.screens import WIDTHS, assert_screen, shown

LONG = "a_problem_whose_name_is_much_longer_than_others"


@pytest.fixture
def suite(tmp_path: Path) -> Path:
    for number, name in ((1, "relu"), (2, LONG)):
        source = f'"""What {name} does, in a sentence that is longer than a narrow terminal."""\n'
        source += "from torch import nn\n\nclass Model(nn.Module):\n"
        source += "    def forward(self, x):\n        return x\n"
        source += "\ndef get_inputs():\n    return []\n\ndef get_init_inputs():\n    return []\n"
        write(tmp_path / "suite" / "level1" / f"{number}_{name}.py", source)
    return tmp_path / "suite"


@pytest.mark.parametrize("width", WIDTHS)
def test_problems_list(suite: Path, width: int | None) -> None:
    assert_screen("problems_list", lambda: list_problems(suite=suite), width)


def test_an_id_is_never_cut(suite: Path) -> None:
    for width in (4, 8, 20):
        assert "level1/1" in shown(lambda: list_problems(suite=suite), width)
