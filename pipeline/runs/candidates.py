"""Candidates as users give them: a folder of files, or a file with one JSON object a line. All read at once,
so that everything that is wrong with them is said before anything runs."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, Field, ValidationError, model_validator

from kernelproof.errors import KernelproofError, UsageError
from kernelproof.extraction import extract
from kernelproof.problems import Suite
from kernelproof.providers import response_from_body
from kernelproof.runs.files import read_text
from kernelproof.runs.imports.naming import place_of
from kernelproof.types import Extraction, Problem, Response
from kernelproof.types.backend_name import BackendName
from kernelproof.types.explain import explain
from kernelproof.types.reported import Claim, ReportedResult, ratio
from kernelproof.wording import counted

SUFFIXES = (".py", ".txt", ".md")
"""Files of a folder that are candidates, or responses that hold one."""
LINES = ".jsonl"
_AFTER_ID = ("_", "-", ".")

T = TypeVar("T")


@dataclass(frozen=True)
class Given:
    """A candidate as it was given, and what extraction made of it."""

    id: str
    """The file's path below its folder, or the line's `id`, else `FILE:LINE`."""
    problem: Problem
    response: Response
    extraction: Extraction
    recorded_for: str | None = None
    """The backend that the answer was asked for, where the line says so."""
    reported: ReportedResult | None = None
    """What is claimed of it, where something is."""


def holds_many(path: Path) -> bool:
    """Whether `path` stands for several candidates."""
    return path.suffix == LINES or path.is_dir()


def given_text(name: str, text: str, problem: Problem) -> Given:
    """A candidate from a text: a program, or a raw response."""
    response = Response(text=text)
    return Given(name, problem, response, extract(response))


def read_candidates(path: Path, suite: Suite, problem: Problem | None) -> list[Given]:
    """The candidates of a folder or of a file of lines; `problem` is that of all of them, where given.

    Raises UsageError when there are none, and one that says of every file or line what is wrong with it.
    """
    return _from_folder(path, suite, problem) if path.is_dir() else _from_lines(path, suite, problem)


def refuse_others(given: Iterable[Given], backend: str) -> None:
    """Raises UsageError naming the answers that were recorded for another backend."""
    others = [g for g in given if g.recorded_for not in (None, backend)]
    if others:
        wrong = [f"{g.id}: recorded for {g.recorded_for}, and this would verify {backend}" for g in others]
        raise UsageError(_listed(wrong, "use --backend, or leave these out"))


def _from_folder(folder: Path, suite: Suite, problem: Problem | None) -> list[Given]:
    def one(file: Path) -> Given:
        below = file.relative_to(folder)
        chosen = problem or problem_of(below, suite)
        return given_text(str(below), read_text(file), chosen)

    files = sorted(file for file in folder.rglob("*") if is_candidate(file, folder))
    if not files:
        raise UsageError(f"{folder} holds no candidates: no {', '.join(SUFFIXES)} below it")
    return all_given(files, one, lambda file: str(file.relative_to(folder)))


def is_candidate(file: Path, folder: Path) -> bool:
    """Whether a file below a folder is read as a candidate: by its suffix, and unless it is hidden."""
    hidden = any(part.startswith(".") for part in file.relative_to(folder).parts)
    return file.suffix in SUFFIXES and not hidden and not (file.is_dir() or file.is_fifo())


def problem_of(below: Path, suite: Suite) -> Problem:
    """The problem that a path says: by its first two folders, or its first, or by the file's name.

    `level1/1_relu/a.py` and `relu/a.py` name it as `--problem` would; `level1_1_a.py` begins with its id.
    `level_1_problem_1_sample_0_kernel.py` is one of the ways in which KernelBench names answers.
    """
    folders = below.parts[:-1]
    for text in ("/".join(folders[:2]), *folders[:1]):
        if text and suite.knows(text):
            return suite.find(text)
    name = below.stem.lower()
    if (place := place_of(below)) is not None and suite.knows(place.problem_id):
        return suite.find(place.problem_id)
    for known in sorted(suite.ids, key=len, reverse=True):
        start = known.replace("/", "_").lower()
        if name == start or name.startswith(tuple(start + after for after in _AFTER_ID)):
            return suite.find(known)
    raise UsageError(
        "no problem in this path; give --problem, or put it below level1/1_relu/, or name it level1_1_..."
    )


class _Claimed(Claim, extra="ignore"):
    """What a line claims of its program; fields that it holds besides are the user's own."""

    def reported(self, source: str, said_in: str) -> ReportedResult:
        facts = self.model_dump()
        facts["speedup"] = self.speedup or ratio(self.baseline_ms, self.runtime_ms)
        return ReportedResult(source=source, said_in=said_in, raw=self.model_dump(exclude_none=True), **facts)


class _Line(BaseModel):
    """One line; fields that it holds besides are the user's own."""

    problem: str | None = Field(default=None, min_length=1)
    source: str | None = None
    response: str | dict[str, Any] | None = None
    id: str | int | None = None
    backend: BackendName | None = None
    claimed: _Claimed | None = None

    @model_validator(mode="after")
    def _one_of_two(self) -> _Line:
        if (self.source is None) == (self.response is None):
            raise ValueError("give either source (a program) or response (a model's answer)")
        return self


def _from_lines(file: Path, suite: Suite, problem: Problem | None) -> list[Given]:
    seen: dict[str, int] = {}

    def one(numbered: tuple[int, bytes]) -> Given:
        number, text = numbered
        line = _parsed(text)
        name = f"{file.name}:{number}" if line.id is None else str(line.id)
        if (before := seen.setdefault(name, number)) != number:
            raise UsageError(f"the id {name!r} is already on line {before}")
        response = _response(line)
        claim = line.claimed.reported(name, file.name) if line.claimed else None
        chosen = _problem_on(line, suite, problem)
        return Given(name, chosen, response, extract(response), line.backend, claim)

    lines = list(_numbered(file))
    if not lines:
        raise UsageError(f"{file} holds no candidates: no line that is not empty")
    return all_given(lines, one, lambda numbered: f"line {numbered[0]}")


def _numbered(file: Path) -> Iterator[tuple[int, bytes]]:
    try:
        lines = file.read_bytes().split(b"\n")
    except OSError as error:
        raise UsageError(f"{file} cannot be read: {error.strerror}") from None
    return ((number, line) for number, line in enumerate(lines, start=1) if line.strip())


def _parsed(text: bytes) -> _Line:
    try:
        return _Line.model_validate(json.loads(text))
    except ValidationError as error:
        raise UsageError(explain(error, {"": "the line"})) from None
    except (ValueError, RecursionError) as error:
        raise UsageError(f"not JSON in UTF-8: {error}") from None


def _response(line: _Line) -> Response:
    if isinstance(line.response, dict):
        return response_from_body(line.response)
    return Response(text=line.source if line.response is None else line.response)


def _problem_on(line: _Line, suite: Suite, problem: Problem | None) -> Problem:
    if line.problem is None:
        if problem is None:
            raise UsageError("problem: missing; give it here, or --problem for all lines")
        return problem
    found = suite.find(line.problem)
    if problem is not None and found != problem:
        raise UsageError(f"problem: {line.problem!r} here, and --problem says {problem.id}; drop one of them")
    return found


def all_given(items: list[T], one: Callable[[T], Given], name: Callable[[T], str]) -> list[Given]:
    """`one` of each item. Raises UsageError that says of every item what is wrong with it."""
    given, wrong = [], []
    for item in items:
        try:
            given.append(one(item))
        except KernelproofError as error:
            wrong.append(f"{name(item)}: {error}")
    if wrong:
        raise UsageError(_listed(wrong, f"of {len(items)} in all"))
    return given


def _listed(wrong: list[str], rest: str) -> str:
    count = f"{counted(len(wrong), 'candidate')} cannot be used ({rest}); nothing was run"
    return "\n  ".join((count, *wrong))
