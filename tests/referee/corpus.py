"""The corpus: candidates of known fate in `tests/corpus/KIND/NAME.py`, read from their header comments.

# problem: level1/1            a packaged problem's id, or a name in tests/corpus/problems
# expected: wrong_output       the status; alternatives apart by | where it is really undetermined
# caught by: values: signed    prefix of the failed check's name (optional)
# settings: {"trials": 1}      VerifySettings fields that differ from BASE (optional)
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pipeline.nouns import CheckOutcome, Problem, Status, Verification, VerifySettings
from pipeline.problems import open_suite, read_problem

CORPUS = Path(__file__).parents[1] / "corpus"
KINDS = ("honest", "wrong", "cheats", "faults")
BASE: dict[str, Any] = {
    "backend": "cpp",
    "own_kernel": False,
    "trials": 1,
    "measure_seconds": 0.3,
    "memory_bytes": 4 << 30,
    "threads": 1,
}
_HEADER = re.compile(r"^# (problem|expected|caught by|settings): (.+)$", re.MULTILINE)


@dataclass(frozen=True)
class Member:
    """One candidate and what must come of it."""

    kind: str
    name: str
    source: str
    problem: Problem
    expected: tuple[Status, ...]
    caught_by: str | None
    settings: VerifySettings

    @property
    def id(self) -> str:
        return f"{self.kind}/{self.name}"


def members() -> list[Member]:
    """The whole corpus, by kind and name."""
    return [_read(kind, path) for kind in KINDS for path in sorted((CORPUS / kind).glob("*.py"))]


def failed_check(verdict: Verification) -> str | None:
    """The name of the check that failed, if one did."""
    return next((c.name for c in verdict.checks if c.outcome is CheckOutcome.FAIL), None)


def _read(kind: str, path: Path) -> Member:
    source = path.read_text()
    header = dict(_HEADER.findall(source))
    problem = _problem(header["problem"])
    size = "small" if "small" in problem.sizes else "full"
    changed = json.loads(header.get("settings", "{}"))
    return Member(
        kind=kind,
        name=path.stem,
        source=source,
        problem=problem,
        expected=tuple(Status(word) for word in header["expected"].split("|")),
        caught_by=header.get("caught by"),
        settings=VerifySettings(**(BASE | {"size": size} | changed)),
    )


def _problem(name: str) -> Problem:
    if "/" in name:
        return open_suite().find(name)
    return read_problem(CORPUS / "problems" / f"{name}.py")
