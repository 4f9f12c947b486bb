"""KernelBench's ways to name the program of a problem's sample, old and new.

runs/NAME/level_1_problem_19_sample_0_kernel.py         its batches
logs/generated_kernel_level_1_problem_19.py             its scripts for one sample
level1/MODEL/problem_19/sample_0/kernel.json            its published samples
"""

from __future__ import annotations

import re
from pathlib import PurePath
from typing import NamedTuple

_LEVEL = re.compile(r"(?<![a-z])level[_-]?(\d{1,6})(?!\d)", re.IGNORECASE)
_PROBLEM = re.compile(r"(?<![a-z])problem[_-]?(\d{1,6})(?!\d)", re.IGNORECASE)
_SAMPLE = re.compile(r"(?<![a-z])sample[_-]?(\d{1,6})(?!\d)", re.IGNORECASE)


class Place(NamedTuple):
    """Which sample of which problem of which level."""

    level: int
    problem: int
    sample: int
    """0 where the name says none."""

    @property
    def problem_id(self) -> str:
        """The problem as a suite knows it: `level1/19`."""
        return f"level{self.level}/{self.problem}"


def place_of(path: PurePath) -> Place | None:
    """What a path says by its last level, problem and sample; None where it does not name a problem so."""
    text = path.as_posix()
    level, problem, sample = (pattern.findall(text) for pattern in (_LEVEL, _PROBLEM, _SAMPLE))
    if not level or not problem:
        return None
    return Place(int(level[-1]), int(problem[-1]), int(sample[-1]) if sample else 0)
