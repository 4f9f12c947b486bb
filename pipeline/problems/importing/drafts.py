"""A draft: a problem that is read and not yet written, with the place that it wants in its suite."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from kernelproof.errors import UsageError
from kernelproof.problems.reading import Place, parse_problem, place_of
from kernelproof.types import Problem

LONGEST_NAME = 120
"""Characters of a name; longer ones are cut. A file's name may have 255 bytes."""
MOST_DIGITS = 9
"""Of a number in front of a name."""

Source = TypeVar("Source")
_STRANGE = re.compile(r"[^\w.+-]+")
_NUMBERED = re.compile(r"(\d+)_(.+)", re.DOTALL)


@dataclass(frozen=True)
class Draft:
    """One problem before it is written."""

    level: int | None
    """N of the folder `levelN`; None: beside the folders."""
    number: int | None
    """The number in front of the file's name."""
    name: str
    """The rest of the file's name, of letters, digits and `_.+-` only."""
    source: str
    """The file's text."""
    origin: str
    """Where it comes from, for messages: `kb/level1/3_a.py`, `row 12 of split train`."""

    @property
    def file(self) -> Path:
        """Its path within the suite: `level1/3_softmax.py`."""
        stem = self.name if self.number is None else f"{self.number}_{self.name}"
        folder = Path() if self.level is None else Path(f"level{self.level}")
        return folder / f"{stem}.py"

    def placed(self, suite: Path) -> Place:
        """Its place in the suite at `suite`."""
        return place_of(suite / self.file)

    def problem(self, suite: Path) -> Problem:
        """The problem that it would be in `suite`. Raises UsageError where it is none."""
        return parse_problem(self.source, self.placed(suite), self.origin, suite=suite.name)


@dataclass(frozen=True)
class Drafts:
    """What one source holds."""

    good: tuple[Draft, ...]
    broken: tuple[str, ...] = ()
    """What cannot become a draft, a message each."""

    @classmethod
    def of(cls, sources: Iterable[Source], draft: Callable[[Source], Draft]) -> Drafts:
        """A draft of each of `sources`; one for which `draft` raises UsageError is broken."""
        good: list[Draft] = []
        broken: list[str] = []
        for source in sources:
            try:
                good.append(draft(source))
            except UsageError as error:
                broken.append(str(error))
        return cls(tuple(good), tuple(broken))


@dataclass(frozen=True)
class Imported:
    """What was written."""

    suite: Path
    """The suite's directory."""
    problems: tuple[Problem, ...]
    files: tuple[Path, ...]
    """The file of each problem."""
    left_out: tuple[str, ...] = ()
    """What is no problem, a message each."""


def split_name(text: str, origin: str) -> tuple[int | None, str]:
    """Number and name of a stem or a title: `23_Softmax (rows)` gives 23 and `Softmax_rows`.

    What no file's name should hold becomes `_`. Raises UsageError where nothing is left.
    """
    stem = _STRANGE.sub("_", text.strip().removesuffix(".py")).lstrip("_.")
    found = _NUMBERED.fullmatch(stem)
    digits, name = (found[1], found[2].lstrip("_.")) if found else ("", stem)
    name = name[:LONGEST_NAME]
    if not re.search(r"[^\W_]", name):
        raise UsageError(f"{origin}: {text[:80]!r} gives no name; a name has a letter or a digit")
    if len(digits) > MOST_DIGITS:
        raise UsageError(f"{origin}: {text[:80]!r} begins with too large a number")
    return int(digits) if digits else None, name
