"""What benchmarks verify: the recorded answers, each made distinct so that nothing compiles twice."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.resources import files

from pipeline.errors import UsageError
from pipeline.extraction import extract
from pipeline.nouns import Problem
from pipeline.problems import open_suite
from pipeline.providers.body import response_from_body
from pipeline.providers.recording import read_recording

PROBLEMS = 6
"""So many problems' answers are gone round."""


@dataclass(frozen=True)
class Work:
    """One candidate."""

    problem: Problem
    source: str


def candidates(backend: str, count: int) -> list[Work]:
    """So many distinct ones, going round the recorded answers of the first problems, right and wrong."""
    suite = open_suite()
    found = [(problem, source) for problem, source, _ in recorded(backend) if "load_inline" in source]
    chosen = list(dict.fromkeys(problem for problem, _ in found))[:PROBLEMS]
    kept = [(problem, source) for problem, source in found if problem in chosen]
    rounds = (kept[number % len(kept)] for number in range(count))
    return [Work(suite.find(p), distinct(source, number)) for number, (p, source) in enumerate(rounds)]


def right(backend: str, problem: Problem) -> str:
    """A recorded answer that is written to be correct. Raises UsageError where there is none."""
    for known, source, note in recorded(backend):
        if known == problem.id and note.startswith("[expected: correct]"):
            return source
    raise UsageError(f"no answer to {problem.id} is recorded as correct for {backend}; choose another")


def recorded(backend: str) -> Iterator[tuple[str, str, str]]:
    """The problem's id, source and note of each recorded answer that holds a program."""
    for key, record in read_recording(files("prompts") / "recorded" / f"{backend}.jsonl").items():
        candidate = extract(response_from_body(record.response)).candidate
        if candidate is not None:
            yield key.problem, candidate.source, record.note


def distinct(source: str, number: int) -> str:
    """The candidate with a line of its own at the end of each of its compiled sources."""
    return re.sub(r"((?:cpp|cuda)_sources=)(\[?)(\w+)(\]?)", rf'\1\2\3 + "\\n// {number}\\n"\4', source)


def sized(problem: Problem, size: str) -> str:
    """The problem's text with one size's values set at its end."""
    values = problem.sizes.get(size, {}).items()
    return "\n".join([problem.source, *(f"{name} = {value!r}" for name, value in values), ""])
