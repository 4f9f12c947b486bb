"""A suite: many problem files that are listed, found and selected together."""

from __future__ import annotations

import difflib
import importlib.resources
import re
from collections.abc import Iterable, Sequence
from fnmatch import fnmatchcase
from pathlib import Path

from kernelproof.errors import UsageError
from kernelproof.problems.reading import Place, level_of, place_of, read_problem
from kernelproof.types import Problem
from kernelproof.wording import counted
from kernelproof.workspace import user_path

PACKAGED = "kernelproof"
"""Name of the suite that travels inside the package."""


class Suite:
    """Problems of one directory tree, of one directory, or of one file. Files are read when asked for."""

    def __init__(self, name: str, files: Iterable[Path]) -> None:
        """`files` are the problem files; their order does not matter."""
        self.name = name
        self._places = sorted(map(place_of, files), key=lambda place: place.order)
        self._read: dict[Path, Problem | UsageError] = {}

    def problems(self, level: int | None = None) -> list[Problem]:
        """The problems that can be read, in natural order; of one level where given."""
        chosen = (place for place in self._places if level is None or place.level == level)
        return self._readable(chosen)

    @property
    def broken(self) -> list[tuple[Path, str]]:
        """Files that are no problems, each with what is wrong. Reads all files."""
        outcomes = ((place.path, self._outcome(place)) for place in self._places)
        return [(path, str(outcome)) for path, outcome in outcomes if isinstance(outcome, UsageError)]

    @property
    def places(self) -> tuple[Place, ...]:
        """Where the problem files are, in natural order; of those, too, that cannot be read."""
        return tuple(self._places)

    @property
    def ids(self) -> list[str]:
        """The ids of all problems, in natural order; of those, too, whose files cannot be read."""
        return list(dict.fromkeys(place.id for place in self._places))

    def knows(self, text: str) -> bool:
        """Whether `text` is an id, file or name of one or several of the problems, readable or not."""
        wanted = _normal(text)
        return any(wanted in place.spellings for place in self._places)

    def find(self, text: str) -> Problem:
        """One problem, by id (`level1/23`), file (`level1/23_softmax`), unique name (`softmax`) or path.

        Raises UsageError: unknown (with close matches), ambiguous (with all of them), many, or broken.
        """
        path = _there(text)
        if path is not None and path.suffix == ".py" and path.is_file():
            return self._from_file(path)
        wanted = _normal(text)
        matches = [place for place in self._places if place.id.lower() == wanted]
        matches = matches or [place for place in self._places if wanted in place.spellings]
        if not matches:
            group = self._group(text)
            raise UsageError(_one_of(text, group) if group else self._unknown(text))
        if len(matches) > 1:
            listed = ", ".join(f"{place.id} ({place.path.name})" for place in matches)
            raise UsageError(f"{text!r} could be any of {listed}; ask for one of them by file name or path")
        return self._good(matches[0])

    def select(self, patterns: Sequence[str]) -> list[Problem]:
        """Problems by id, name, path, folder (`level1`), glob (`level2/*`, `*softmax*`) or `all`, each once.

        In the order of the patterns. A pattern for many leaves broken files out; raises UsageError when
        one matches nothing that can be read.
        """
        found: dict[str, Problem] = {}
        for pattern in patterns:
            for problem in self._matching(pattern):
                found.setdefault(problem.id, problem)
        return list(found.values())

    def _matching(self, pattern: str) -> list[Problem]:
        places = self._group(pattern)
        if places is None:
            return [self.find(pattern)]
        problems = self._readable(places)
        if not problems and places:
            raise UsageError(
                f"{pattern!r} matches only files that are no problems: {self._outcome(places[0])}"
            )
        if not problems:
            raise UsageError(self._unknown(pattern))
        return problems

    def _group(self, pattern: str) -> list[Place] | None:
        """The problems that `all`, a folder or a glob stands for; None when it is none of these."""
        wanted = pattern.strip().strip("/").lower()
        if wanted == "all":
            return self._places
        if folder := [place for place in self._places if place.folder.lower() == wanted]:
            return folder
        if any(character in wanted for character in "*?["):
            return [p for p in self._places if any(fnmatchcase(way, wanted) for way in p.spellings)]
        return None

    def _readable(self, places: Iterable[Place]) -> list[Problem]:
        outcomes = map(self._outcome, places)
        return [outcome for outcome in outcomes if isinstance(outcome, Problem)]

    def _good(self, place: Place) -> Problem:
        outcome = self._outcome(place)
        if isinstance(outcome, UsageError):
            raise outcome
        return outcome

    def _outcome(self, place: Place) -> Problem | UsageError:
        if place.path not in self._read:
            self._read[place.path] = self._fresh(place)
        return self._read[place.path]

    def _fresh(self, place: Place) -> Problem | UsageError:
        first = next(other for other in self._places if other.id == place.id)
        if first is not place:
            return UsageError(f"{place.path}: {place.id} is also {first.path.name}; give it another number")
        try:
            return read_problem(place.path, suite=self.name)
        except UsageError as error:
            return error

    def _from_file(self, path: Path) -> Problem:
        for place in self._places:
            if place.path.samefile(path):
                return self._good(place)
        return read_problem(path)

    def _unknown(self, text: str) -> str:
        ways = {way: place.id for place in self._places for way in reversed(place.spellings)}
        close = difflib.get_close_matches(_normal(text), ways, n=4, cutoff=0.6)
        nearest: dict[str, str] = {}  # problem id to its closest spelling
        for way in close:
            nearest.setdefault(ways[way], way)
        near = ", ".join(way if way == found else f"{way} ({found})" for found, way in nearest.items())
        hint = f"did you mean {near}?" if near else "`kernelproof problems list` shows what there is"
        folders = {place.folder.lower(): place.folder for place in self._places if place.level is not None}
        if alike := difflib.get_close_matches(_normal(text), folders, n=1, cutoff=0.8):
            hint = f"did you mean the folder {folders[alike[0]]}?"
        if level_of(_normal(text)) is not None or _normal(text) == "level":
            hint = f"its folders are {', '.join(dict.fromkeys(place.folder for place in self._places))}"
        if "," in text and all(map(self.knows, text.split(","))):
            hint = f"give several with spaces between them: {' '.join(text.split(','))}"
        if text.endswith(".py") and not near:
            hint = "there is no such file either"
        path = _there(text)
        if path is not None and path.is_dir():
            hint = f"it is a folder: give it as --suite {text}, and here a problem that is in there"
        return f"no problem {text!r} among the {len(self._places)} of suite {self.name}; {hint}"


def open_suite(path: Path | None = None) -> Suite:
    """The packaged problems, or those at `path`: a file, a directory of files or of `levelN` folders, or a
    KernelBench checkout (which holds `KernelBench/levelN`). Raises UsageError when there are none.
    """
    if path is None:
        root = Path(str(importlib.resources.files("kernelproof.reference_models")))
        return Suite(PACKAGED, _in_levels(root))
    path = user_path(path).absolute()
    if path.is_file():
        return Suite("file", [path])
    if not path.is_dir():
        raise UsageError(f"{path} does not exist; a suite is a problem file or a directory of them")
    for root in (path, path / "KernelBench"):
        if root.is_dir() and (files := _in_levels(root)):
            return Suite(root.name, files)
    if files := _in_folder(path):
        return Suite(path.parent.name if level_of(path.name) is not None else path.name, files)
    raise UsageError(f"{path} holds no problems: neither .py files nor folders level1, level2 ... with them")


def _in_levels(root: Path) -> list[Path]:
    levels = (folder for folder in root.iterdir() if folder.is_dir() and level_of(folder.name) is not None)
    return [file for folder in levels for file in _in_folder(folder)]


def _in_folder(folder: Path) -> list[Path]:
    files = (file for file in folder.glob("*.py") if not file.name.startswith(("_", ".")))
    return [file for file in files if not file.is_fifo()]  # reading a FIFO waits for a writer


def _there(text: str) -> Path | None:
    """The path that `text` is; None when nothing is there, or can be: words of all kinds are asked for."""
    try:
        path = user_path(text)
        return path if text.strip() and path.exists() else None
    except OSError:  # too long for a name
        return None


def _one_of(text: str, group: Sequence[Place]) -> str:
    """What is said of a word that stands for many problems where one is needed."""
    first = group[0]
    named = first.id if first.id == first.name else f"{first.id} or {first.name}"
    return (
        f"{text!r} stands for {counted(len(group), 'problem')}, and one is needed here: "
        f"name it, as {named}; `kernelproof problems list` shows them"
    )


def _normal(text: str) -> str:
    """As `Place.spellings` are written: lower case, no suffix, the number without leading zeros."""
    plain = text.strip().lower().removesuffix(".py").strip("/")
    return re.sub(r"/0+(?=\d+$)", "/", plain)
