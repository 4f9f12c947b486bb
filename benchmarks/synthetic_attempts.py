"""A database of synthetic attempts: models named `synthetic-N`, invented times, as wide as real ones.

Those after the first 2,000 are copies of these with other times; they share texts and have no links in the
chain of hashes.
"""

from __future__ import annotations

import random
from dataclasses import dataclass

from sqlalchemy import text
from sqlalchemy.orm import Session

from kernelproof.db import models, records
from kernelproof.db.connection import Database
from kernelproof.db.models import Base
from kernelproof.hashing import sha256_text
from kernelproof.types import (
    Build,
    BuildState,
    Candidate,
    Check,
    CheckOutcome,
    Environment,
    Extraction,
    Interval,
    Measurement,
    Pace,
    Problem,
    Response,
    RunSettings,
    Status,
    Verification,
    VerifySettings,
)
from kernelproof.version import VERIFIER
from kernelproof.workspace import ServerDatabase

MODELS, PROBLEMS = 5, 100
ORIGINALS = 2_000
"""Attempts that are written one by one; a multiple of the outcomes."""
SETTINGS = VerifySettings(size="small")
ENVIRONMENT = Environment(
    kernelproof="synthetic",
    python="synthetic",
    torch="synthetic",
    platform="synthetic",
    cpu="Synthetic CPU",
    cores=2,
    memory_bytes=0,
    host_sha256="0" * 64,
)
STRATEGIES = ("repair", "refine", "beam", "evolve", "sample")
OUTCOMES = (Status.CORRECT, Status.CORRECT, Status.WRONG_OUTPUT, Status.BUILD_ERROR, Status.NO_CODE)


@dataclass(frozen=True)
class Shape:
    """How attempts lie in samples: attempt `number` belongs to one of the runs, then problems, then turns."""

    runs: tuple[int, ...]
    turns: int
    first_sample: int = 0

    def place(self, number: int) -> tuple[int, int, int, int]:
        """Run, index of the problem, sample, turn."""
        rest, run = divmod(number, len(self.runs))
        rest, problem = divmod(rest, PROBLEMS)
        sample, turn = divmod(rest, self.turns)
        return self.runs[run], problem, self.first_sample + sample, 1 + turn


def fill(database: Database, attempts: int, turns: int, dice: random.Random) -> None:
    """Stores the runs, the problems, and `attempts` attempts."""
    settings = [synthetic_run(f"synthetic-{number}", number, turns) for number in range(MODELS)]
    runs = database.write(lambda session: tuple(records.ensure_run(session, each) for each in settings))
    problems = [synthetic_problem(number) for number in range(PROBLEMS)]
    database.write(lambda session: [records.ensure_problem(session, problem) for problem in problems])
    add_all(database, Shape(runs, turns), attempts, dice)


def add_all(database: Database, shape: Shape, attempts: int, dice: random.Random) -> None:
    """Stores attempts in transactions of some hundred."""
    problems = [synthetic_problem(number) for number in range(PROBLEMS)]
    parents: dict[tuple[int, int, int, int], int] = {}

    def added(session: Session, numbers: range) -> None:
        for number in numbers:
            run, problem, sample, turn = place = shape.place(number)
            parent = parents.get((run, problem, sample, turn - 1))
            parents[place] = add(session, place, parent, problems[problem], number, dice)

    for begin in range(0, attempts, 500):
        numbers = range(begin, min(begin + 500, attempts))
        database.write(lambda session, numbers=numbers: added(session, numbers))


def synthetic_run(model: str, number: int, turns: int) -> RunSettings:
    """A run's settings; where samples have several turns, each with a strategy."""
    strategy = STRATEGIES[number % len(STRATEGIES)] if turns > 1 else None
    return RunSettings(model=model, verify=SETTINGS, turns=turns, strategy=strategy)


def synthetic_problem(number: int) -> Problem:
    source = f"# synthetic problem {number}\n" + "x = 1\n" * 200
    level = 1 + number % 3
    return Problem(
        id=f"level{level}/{number}",
        suite="synthetic",
        name="synthetic",
        level=level,
        source=source,
        sha256=sha256_text(source),
    )


def add(
    session: Session,
    place: tuple[int, int, int, int],
    parent: int | None,
    problem: Problem,
    number: int,
    dice: random.Random,
) -> int:
    """Stores an attempt with an outcome by the dice; its number in the database."""
    status = dice.choice(OUTCOMES)
    run, index, sample, turn = place
    moment = "2026-01-01T00:00:00.000+00:00"
    attempt = models.Attempt(
        run_id=run,
        problem=index + 1,
        sample=sample,
        turn=turn,
        parent_id=parent,
        status=status,
        created=moment,
    )
    session.add(attempt)
    session.flush()
    source = f"# synthetic candidate {number}\n" + "y = 2\n" * 700
    answer = records.unsaved_response(session, Response(text=source, raw={"synthetic": source}))
    answer.attempt_id, answer.ordinal, answer.created = attempt.id, 1, moment
    session.add(answer)
    if status is not Status.NO_CODE:
        candidate = Candidate(source=source, sha256=sha256_text(source))
        session.add(
            records.unsaved_candidate(session, attempt.id, Extraction(candidate=candidate, method="fence"))
        )
        verification = synthetic_verification(problem, candidate, status, dice)
        records.add_verification(session, attempt.id, verification, "first")
    return int(attempt.id)


def synthetic_verification(
    problem: Problem, candidate: Candidate, status: Status, dice: random.Random
) -> Verification:
    log = f"synthetic log of {candidate.sha256}\n" + "note: nothing\n" * 100
    check = Check(name="synthetic", outcome=CheckOutcome.PASS, asked="Asked?", seen="Seen.", figures={"n": 1})
    return Verification(
        status=status,
        reason="synthetic",
        problem_id=problem.id,
        problem_sha256=problem.sha256,
        candidate_sha256=candidate.sha256,
        settings=SETTINGS,
        environment=ENVIRONMENT,
        builds=(Build(key=candidate.sha256, state=BuildState.OK, name="synthetic", log=log),),
        checks=(check,) * 12,
        measurement=synthetic_measurement(dice) if status is Status.CORRECT else None,
        seeds={"synthetic": dice.getrandbits(63)},
        verifier=VERIFIER,
        created="2026-01-01T00:00:00.000+00:00",
    )


def synthetic_measurement(dice: random.Random) -> Measurement:
    speedup = dice.lognormvariate(0.2, 0.5)
    block = tuple(dice.random() for _ in range(30))
    return Measurement(
        candidate_ms=1 / speedup,
        baseline_ms=1.0,
        speedup=speedup,
        speedup_interval=Interval(low=0.99 * speedup, high=1.01 * speedup),
        pace=Pace.UNRESOLVED if 0.9 < speedup < 1.1 else Pace.FASTER if speedup > 1 else Pace.SLOWER,
        resolution=0.01,
        aa_spread=0.003,
        host_ms=1 / speedup,
        overhead_ms=0.0,
        flush_bytes=0,
        slots=4,
        candidate_samples_ms=(block,) * 10,
        baseline_samples_ms=(block,) * 10,
        order=("BC", "CB") * 5,
    )


COPIES = """
WITH RECURSIVE series(n) AS (SELECT {first} UNION ALL SELECT n + 1 FROM series WHERE n + 1 < {last}),
     copied AS (
       SELECT n, 1 + (n % {originals} * 7919 + n / {pairs} * 613) % {originals} AS source,
              0.5 + (n % 1000 * 7919 + n / {pairs} * 613) % 1000 / 1000.0 AS factor FROM series
     )
"""
"""New attempts by number, from 0; each is a copy of an original, `factor` times as fast. Attempts of one
run and problem are copies of all originals in turn."""
VARIED = {
    "attempts": {
        "id": "n + 1",
        "run_id": f"1 + n % {MODELS}",
        "problem": f"1 + n / {MODELS} % {PROBLEMS}",
        "sample": "n / {pairs} / {turns}",
        "turn": "1 + n / {pairs} % {turns}",
        "parent_id": "CASE WHEN n / {pairs} % {turns} = 0 THEN NULL ELSE n + 1 - {pairs} END",
    },
    "responses": {"id": "100000 + n", "attempt_id": "n + 1"},
    "verifications": {"id": "100000 + n", "attempt_id": "n + 1"},
    "measurements": {
        "verification_id": "100000 + n",
        "speedup": "t.speedup * factor",
        "speedup_low": "t.speedup_low * factor",
        "speedup_high": "t.speedup_high * factor",
    },
}
OF_ATTEMPT = {
    "attempts": "t.id = source",
    "responses": "t.attempt_id = source",
    "verifications": "t.attempt_id = source",
    "measurements": "t.verification_id = (SELECT v.id FROM verifications v WHERE v.attempt_id = source)",
}
SAMPLES = {"candidate_samples_ms": "'[]'", "baseline_samples_ms": "'[]'", "host_samples_ms": "'[]'"}


def multiply(database: Database, attempts: int, turns: int, narrow: bool) -> None:
    """Copies the originals until there are `attempts` attempts."""
    sizes = {"pairs": MODELS * PROBLEMS, "turns": turns, "originals": ORIGINALS}
    for first in range(ORIGINALS, attempts, 50_000):
        last = min(first + 50_000, attempts)
        series = COPIES.format(first=first, last=last, **sizes)
        for name, varied in VARIED.items():
            table = Base.metadata.tables[name]
            left_out = SAMPLES if narrow and name == "measurements" else {}
            values = varied | left_out
            columns = {
                f'"{c.name}"': values.get(c.name, f't."{c.name}"').format(**sizes) for c in table.columns
            }
            statement = (
                f"INSERT INTO {name} ({', '.join(columns)}) {series} SELECT {', '.join(columns.values())} "
                f"FROM copied JOIN {name} t ON {OF_ATTEMPT[name]}"
            )
            database.write(lambda session, s=statement: session.execute(text(s)).close())
    if isinstance(database.place, ServerDatabase):  # which numbers rows itself, from where it left off
        for name in ("attempts", "responses", "verifications"):
            following = f"SELECT setval(pg_get_serial_sequence('{name}', 'id'), MAX(id)) FROM {name}"
            database.write(lambda session, s=following: session.execute(text(s)).close())
