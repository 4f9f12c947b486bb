"""What a problem's path says about it: id, level, number and name."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

_LEVEL = re.compile(r"level(\d+)")
_NUMBERED = re.compile(r"(\d+)_(.+)")


@dataclass(frozen=True)
class Place:
    """One problem file, not yet opened."""

    path: Path
    folder: str
    """Name of the folder that holds the file: `level1`."""
    level: int | None
    """N of a folder named `levelN`."""
    number: int | None
    """23 of `23_softmax.py`."""
    name: str
    """`softmax` of `23_softmax.py`."""

    @property
    def id(self) -> str:
        """`level1/23`; for a file without number `level1/softmax`, outside a level folder just `softmax`."""
        if self.number is not None:
            return f"{self.folder}/{self.number}"
        return f"{self.folder}/{self.name}" if self.level is not None else self.name

    @property
    def spellings(self) -> tuple[str, ...]:
        """All ways to ask for it, lower case: `level1/23`, `level1/23_softmax`, `softmax` ..."""
        stem = self.path.stem
        ways = (self.id, f"{self.folder}/{stem}", f"{self.folder}/{self.name}", stem, self.name)
        return tuple(dict.fromkeys(way.lower() for way in ways))

    @property
    def order(self) -> tuple[float, str, float, str]:
        """Sorts levels by number, then folders, then problems by number, those without one last."""
        level = float("inf") if self.level is None else self.level
        number = float("inf") if self.number is None else self.number
        return level, self.folder, number, self.name


def place_of(path: Path) -> Place:
    """Reads a path; the file is not touched."""
    path = path.absolute()
    numbered = _NUMBERED.fullmatch(path.stem)
    return Place(
        path=path,
        folder=path.parent.name,
        level=level_of(path.parent.name),
        number=int(numbered[1]) if numbered else None,
        name=numbered[2] if numbered else path.stem,
    )


def level_of(folder: str) -> int | None:
    """N of a folder named `levelN`, else None."""
    match = _LEVEL.fullmatch(folder)
    return int(match[1]) if match else None
