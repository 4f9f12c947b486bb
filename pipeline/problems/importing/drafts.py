"""A draft: a problem that is read and not yet written, with the place that it wants in its suite."""

from __future__ import annotations

import os
import re
import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from kernelproof.errors import MachineError, UsageError
from kernelproof.problems.reading import Place, parse_problem, place_of
from kernelproof.types import Problem
from kernelproof.wording import counted

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
    good: tuple[Draft, ...]
    broken: tuple[str, ...] = ()

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
    suite: Path
    problems: tuple[Problem, ...]
    files: tuple[Path, ...]
    left_out: tuple[str, ...] = ()


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


def write_suite(drafts: Drafts, to: Path, *, skip_broken: bool = False) -> Imported:
    """Writes the drafts as a new suite at `to`, which appears when it is whole.

    With `skip_broken` drafts that are no problems are left out. Raises UsageError where one is none, where
    two have one id, where none is left, or where `to` holds something; MachineError where `to` cannot be
    written.
    """
    _require_free(to)
    good, broken = _checked(drafts.good, to)
    broken = [*drafts.broken, *broken]
    if broken and not skip_broken:
        total = len(drafts.good) + len(drafts.broken)
        many = f"{len(broken)} of {total} are no problems, the first: " if len(broken) > 1 else ""
        raise UsageError(f"{many}{broken[0]}; nothing was written: mend it, or give --skip-broken")
    if not good:
        first = f": {broken[0]}" if broken else ""
        raise UsageError(f"there is no problem to write{first}")
    _require_one_layout([draft for draft, _ in good])
    with _new_directory(to) as folder:
        for draft, _ in good:
            path = folder / draft.file
            path.parent.mkdir(exist_ok=True)
            _write(path, draft.source)
    return Imported(
        suite=to,
        problems=tuple(problem for _, problem in good),
        files=tuple(to / draft.file for draft, _ in good),
        left_out=tuple(broken),
    )


def _checked(drafts: Sequence[Draft], to: Path) -> tuple[list[tuple[Draft, Problem]], list[str]]:
    """The drafts that are problems, and what is wrong with the others, as an id that is taken."""
    good: list[tuple[Draft, Problem]] = []
    broken: list[str] = []
    seen: dict[str, str] = {}
    for draft in drafts:
        try:
            problem = draft.problem(to)
        except UsageError as error:
            broken.append(str(error))
            continue
        key = problem.id.lower()
        if key in seen:
            broken.append(f"{draft.origin}: {problem.id} is also {seen[key]}; give it another number or name")
            continue
        seen[key] = draft.origin
        good.append((draft, problem))
    return good, broken


def _require_one_layout(drafts: Sequence[Draft]) -> None:
    without = [draft for draft in drafts if draft.level is None]
    if without and len(without) < len(drafts):
        raise UsageError(
            f"{without[0].origin} has no level, and {counted(len(drafts) - len(without), 'other')} "
            "have one; say which level such problems get with --level"
        )


def _require_free(to: Path) -> None:
    if _holds_something(to):
        raise UsageError(f"{to} is there already; give --to a new directory")
    if to.absolute() == Path.cwd():
        raise UsageError(
            f"{to} is the current directory, which cannot be replaced; give --to a new directory"
        )
    if not to.absolute().parent.is_dir():
        raise UsageError(f"{to.parent} is no directory; make it first: mkdir -p {to.parent}")


def _holds_something(path: Path) -> bool:
    if path.is_dir() and not path.is_symlink():
        return any(path.iterdir())
    return path.exists() or path.is_symlink()


@contextmanager
def _new_directory(to: Path) -> Iterator[Path]:
    """A directory that becomes `to` at the end, and is gone where that fails."""
    with _unwritable(to):
        folder = Path(tempfile.mkdtemp(prefix=f".{to.name}.importing-", dir=to.absolute().parent))
        try:
            yield folder
            folder.chmod(0o777 & ~_umask())
            folder.rename(to)  # replaces an empty directory, and nothing else
        except BaseException:
            shutil.rmtree(folder, ignore_errors=True)
            raise


@contextmanager
def _unwritable(to: Path) -> Iterator[None]:
    """A place where nothing can be written is the machine's matter, in one line."""
    try:
        yield
    except OSError as error:
        raise MachineError(f"{to} cannot be written: {error.strerror}; nothing was imported") from error


def _write(path: Path, source: str) -> None:
    with path.open("w", encoding="utf-8", newline="") as stream:  # the text's own line endings
        stream.write(source)


def _umask() -> int:
    current = os.umask(0o022)
    os.umask(current)
    return current
