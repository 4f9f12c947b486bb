"""What benchmarks verify: the recorded answers, each made distinct so that nothing compiles twice."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.resources import files
from typing import NamedTuple

from kernelproof.errors import UsageError
from kernelproof.extraction import extract
from kernelproof.problems import open_suite
from kernelproof.providers.body import response_from_body
from kernelproof.providers.recording import read_recording
from kernelproof.types import Problem

PROBLEMS = 6
"""So many problems' answers are gone round."""


@dataclass(frozen=True)
class Work:
    """One candidate."""

    problem: Problem
    source: str
    expected: str = ""
    """The status that its author meant it to have; empty where nobody said."""


def candidates(backend: str, count: int) -> list[Work]:
    """So many distinct ones, going round the recorded answers of the first problems, right and wrong."""
    suite = open_suite()
    found = [answer for answer in recorded(backend) if "load_inline" in answer.source]
    chosen = list(dict.fromkeys(answer.problem for answer in found))[:PROBLEMS]
    kept = [answer for answer in found if answer.problem in chosen]
    rounds = (kept[number % len(kept)] for number in range(count))
    return [
        Work(suite.find(answer.problem), distinct(answer.source, number), answer.expected)
        for number, answer in enumerate(rounds)
    ]


def right(backend: str, problem: Problem) -> str:
    """A recorded answer that is written to be correct. Raises UsageError where there is none."""
    for answer in recorded(backend):
        if answer.problem == problem.id and answer.expected == "correct":
            return answer.source
    raise UsageError(f"no answer to {problem.id} is recorded as correct for {backend}; choose another")


class Answer(NamedTuple):
    """A recorded answer that holds a program."""

    problem: str
    """The problem's id."""
    source: str
    expected: str
    """The status that its note names."""


def recorded(backend: str) -> Iterator[Answer]:
    """The answers of one backend, in their order. Raises ValueError for one whose note names no status."""
    for key, record in read_recording(files("kernelproof.prompts") / "recorded" / f"{backend}.jsonl").items():
        candidate = extract(response_from_body(record.response)).candidate
        if candidate is not None:
            named = re.match(r"\[expected: (\w+)\]", record.note)
            if named is None:
                raise ValueError(f"the note of {key} does not begin with [expected: STATUS]")
            yield Answer(key.problem, candidate.source, named[1])


def distinct(source: str, number: int) -> str:
    """The candidate with a line of its own at the end of each of its compiled sources."""
    return re.sub(r"((?:cpp|cuda)_sources=)(\[?)(\w+)(\]?)", rf'\1\2\3 + "\\n// {number}\\n"\4', source)


def sized(problem: Problem, size: str) -> str:
    """The problem's text with one size's values set at its end."""
    values = problem.sizes.get(size, {}).items()
    return "\n".join([problem.source, *(f"{name} = {value!r}" for name, value in values), ""])
