"""Candidates as users give them: a folder of files, or a file with one JSON object a line. All read at once,
so that everything that is wrong with them is said before anything runs."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePath
from typing import Any, NamedTuple, TypeVar

from pydantic import BaseModel, Field, ValidationError, model_validator

from kernelproof.db.store import Store
from kernelproof.errors import KernelproofError, UsageError
from kernelproof.extraction import extract
from kernelproof.jobs import Job, Judge, NewAttempt, Purpose, Verdict
from kernelproof.jobs.judge import files_run, places
from kernelproof.problems import Suite
from kernelproof.providers import response_from_body
from kernelproof.regular_files import LINES_BYTES, read_regular
from kernelproof.runs.files import Folder, LeftOut, stand_in
from kernelproof.runs.shutdown import Shutdown
from kernelproof.runs.stream import Stream, in_threads
from kernelproof.types import Extraction, Problem, Response, VerifySettings
from kernelproof.types.record import BackendName, explain
from kernelproof.types.reproduction import ReportedFigures, ReportedResult, ratio
from kernelproof.verifier.engine.engine import Engine
from kernelproof.wording import counted

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
    """What a path says by its last level, problem and sample; None where it does not name a problem so.

    In KernelBench's ways, old and new:
    runs/NAME/level_1_problem_19_sample_0_kernel.py         its batches
    logs/generated_kernel_level_1_problem_19.py             its scripts for one sample
    level1/MODEL/problem_19/sample_0/kernel.json            its published samples
    """
    text = path.as_posix()
    level, problem, sample = (pattern.findall(text) for pattern in (_LEVEL, _PROBLEM, _SAMPLE))
    if not level or not problem:
        return None
    return Place(int(level[-1]), int(problem[-1]), int(sample[-1]) if sample else 0)


SUFFIXES = (".py", ".txt", ".md")
"""Files of a folder that are candidates, or responses that hold one."""
LINES = ".jsonl"
_NAMED = 3
"""The number of files or entries that a note names."""
_AFTER_ID = ("_", "-", ".")

T = TypeVar("T")
Notes = list[str] | None


@dataclass(frozen=True)
class CandidateInput:
    """A candidate as the user supplied it, and what was extracted from it."""

    id: str
    """The file's path below its folder, or the line's `id`, else `FILE:LINE`."""
    problem: Problem
    response: Response
    extraction: Extraction
    recorded_for: str | None = None
    """The backend that the answer was asked for, where the line says so."""
    reported: ReportedResult | None = None

    @property
    def stored_response(self) -> Response:
        """The response as a run of files keeps it: with the file's name, in place of a server's JSON."""
        path = PurePath(self.id)
        raw = {"file": path.name if path.is_absolute() else self.id}
        return self.response if self.response.raw else self.response.model_copy(update={"raw": raw})


def holds_many(path: Path) -> bool:
    """Whether `path` stands for several candidates."""
    return path.suffix == LINES or path.is_dir()


def candidate_from_text(name: str, text: str, problem: Problem) -> CandidateInput:
    response = Response(text=text)
    return CandidateInput(name, problem, response, extract(response))


def read_candidates(
    path: Path, suite: Suite, problem: Problem | None, *, follow_links: bool = False, notes: Notes = None
) -> list[CandidateInput]:
    """The candidates of a folder or of a file of lines; `problem` is that of all of them, where given.

    `follow_links`: also those that lead out of the folder. `notes`: where files that are left out are named.
    Raises UsageError when there are none, and one that says of every file or line what is wrong with it.
    """
    if not path.is_dir():
        return _from_lines(path, suite, problem)
    return _from_folder(Folder(path, follow_links=follow_links), suite, problem, notes)


def refuse_others(candidates: Iterable[CandidateInput], backend: str) -> None:
    """Raises UsageError naming the answers that were recorded for another backend."""
    others = [g for g in candidates if g.recorded_for not in (None, backend)]
    if others:
        wrong = [f"{g.id}: recorded for {g.recorded_for}, and this would verify {backend}" for g in others]
        raise UsageError(_listed(wrong, "use --backend, or leave these out"))


def _from_folder(folder: Folder, suite: Suite, problem: Problem | None, notes: Notes) -> list[CandidateInput]:
    def one(file: Path) -> CandidateInput:
        text = folder.text(file)
        below = file.relative_to(folder.root)
        return candidate_from_text(str(below), text, problem or problem_of(below, suite))

    files = folder.files(lambda name: name.endswith(SUFFIXES))
    if not files:
        raise UsageError(f"{folder.root} holds no candidates: no {', '.join(SUFFIXES)} below it")
    return read_each(files, one, folder.name, notes)


def problem_of(below: PurePath, suite: Suite) -> Problem:
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


class _LineFigures(ReportedFigures, extra="ignore"):
    """What a line reports of its program; fields that it holds besides are the user's own."""

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
    claimed: _LineFigures | None = None

    @model_validator(mode="after")
    def _one_of_two(self) -> _Line:
        if (self.source is None) == (self.response is None):
            raise ValueError("give either source (a program) or response (a model's answer)")
        return self


def _from_lines(file: Path, suite: Suite, problem: Problem | None) -> list[CandidateInput]:
    seen: dict[str, int] = {}

    def one(numbered: tuple[int, bytes]) -> CandidateInput:
        number, text = numbered
        line = _parsed(text)
        name = f"{file.name}:{number}" if line.id is None else str(line.id)
        if (before := seen.setdefault(name, number)) != number:
            raise UsageError(f"the id {name!r} is already on line {before}")
        if line.source is not None and (stands_in := stand_in(line.source)):
            raise UsageError(f"source: it holds {stands_in}")
        response = _response(line)
        reported = line.claimed.reported(name, file.name) if line.claimed else None
        chosen = _problem_on(line, suite, problem)
        return CandidateInput(name, chosen, response, extract(response), line.backend, reported)

    lines = list(_numbered(file))
    if not lines:
        raise UsageError(f"{file} holds no candidates: no line that is not empty")
    return read_each(lines, one, lambda numbered: f"line {numbered[0]}")


def _numbered(file: Path) -> Iterator[tuple[int, bytes]]:
    try:
        lines = read_regular(file, LINES_BYTES).split(b"\n")
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


def read_each(
    items: list[T], one: Callable[[T], CandidateInput], name: Callable[[T], str], notes: Notes = None
) -> list[CandidateInput]:
    """`one` of each item. Raises UsageError that says of every item what is wrong with it.

    Files that are left out get one note for each reason, where there are `notes`, else they are wrong, too.
    """
    given, wrong, left_out = [], [], []
    for item in items:
        try:
            given.append(one(item))
        except LeftOut as error:
            left_out.append((name(item), str(error)))
        except KernelproofError as error:
            wrong.append(f"{name(item)}: {error}")
    if notes is None or not given:
        wrong += [f"{item}: {why}" for item, why in left_out]
    else:
        for why in dict.fromkeys(why for _, why in left_out):
            names = [item for item, each in left_out if each == why]
            notes.append(note_on("file", f"left out ({why})", names))
    if wrong:
        raise UsageError(_listed(wrong, f"of {len(items)} in all"))
    return given


def note_on(noun: str, predicate: str, names: Sequence[str]) -> str:
    """One sentence about several: `2 texts left out: a.md, b.md`."""
    rest = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return f"{counted(len(names), noun)} {predicate}: {', '.join(names[:_NAMED])}{rest}"


def _listed(wrong: list[str], rest: str) -> str:
    count = f"{counted(len(wrong), 'candidate')} cannot be used ({rest}); nothing was run"
    return "\n  ".join((count, *wrong))


@dataclass(frozen=True)
class Done:
    input: CandidateInput
    verdict: Verdict


@dataclass(frozen=True)
class ManyDone:
    done: tuple[Done, ...]
    missing: int


async def verify_all(
    candidates: Sequence[CandidateInput],
    settings: VerifySettings,
    engine: Engine,
    *,
    store: Store | None = None,
    label: str | None = None,
    again: bool = False,
    on_done: Callable[[Done], None] = lambda _: None,
    unread: Callable[[], bool] = lambda: False,
) -> ManyDone:
    """Verifies candidates to the end, or to a SIGINT or SIGTERM; results stored by then stay.

    With a store, what is there with a final status for the same content, problem, settings and label is taken
    from it, unless `again`. The same content twice is two candidates and two attempts. Raises what
    `Engine.verify` raises, and OutputClosed when `on_done` or `unread` says that nobody reads any more.
    """

    def work(candidate: CandidateInput) -> Verdict:
        keep = NewAttempt(run, candidate.stored_response, shared=False) if store is not None else None
        return judge.judge(Job(candidate.problem, candidate.extraction, settings, keep, purpose))

    def note(each: Done) -> None:
        done.append(each)
        shutdown.hear(each)

    done: list[Done] = []
    judge, run = Judge(engine, store), files_run(settings, label)
    purpose = Purpose.MEASUREMENT if again else Purpose.VERDICT
    shutdown = Shutdown(on_done, unread)
    async with shutdown.work(engine) as group:
        async for candidate, verdict in Stream(candidates, in_threads(work, places()), group, places()):
            note(Done(candidate, verdict))
    kept_words = "what was verified is stored" if store is not None else "--no-store keeps nothing of this"
    shutdown.raise_if_gone(kept_words)
    return ManyDone(tuple(done), len(candidates) - len(done))
