"""What commands answer about the golden database, with floats to nine digits: `answers.json`."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from tests.cli.program import Program

POLICY = ("--policy", "2")
"""That of its verifications."""


def rounded(value: Any) -> Any:
    """The value with floats as near as machines and versions of libraries agree on."""
    match value:
        case dict():
            return {key: rounded(inner) for key, inner in value.items()}
        case list():
            return [rounded(inner) for inner in value]
        case float():
            return float(f"{value:.9g}")
        case _:
            return value


def leaderboard(program: Program) -> Any:
    """All boards."""
    return rounded(json.loads(program.run("leaderboard", *POLICY, "--json").stdout))


def shown(program: Program) -> dict[str, Any]:
    """An attempt that was timed, one that does not compile, and one without an end."""
    numbers: dict[str, int] = {}
    for attempt in program.attempts():
        timed = attempt.verdict is not None and attempt.verdict.verification.measurement is not None
        numbers.setdefault("timed" if timed else str(attempt.status), attempt.id)
    chosen = {name: numbers[name] for name in ("timed", "build_error", "None", "no_code")}
    return {
        name: rounded(json.loads(program.run("show", number, "--json").stdout))
        for name, number in chosen.items()
    }


def exported(program: Program) -> Any:
    """The training pairs."""
    program.run("export", "pairs", *POLICY, "--run", "first", "-o", program.workspace / "pairs.jsonl")
    return [
        rounded(json.loads(line)) for line in (program.workspace / "pairs.jsonl").read_text().splitlines()
    ]


PARTS: dict[str, Callable[[Program], Any]] = {"export": exported, "leaderboard": leaderboard, "show": shown}
