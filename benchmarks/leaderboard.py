"""How long `kernelproof leaderboard` takes over many attempts, and how much room they take:
``python -m benchmarks.leaderboard``.

Fills a database with synthetic attempts (models named `synthetic-N`, invented times), as wide as real
ones: response, source, build log, checks, raw samples. Those after the first 2,000 are copies of these with
other times; they share texts, have no links in the chain of hashes, and with `--narrow` no raw samples. Then
measures packing, each question within a process, and whole processes. Measures; asserts nothing.
"""

from __future__ import annotations

import argparse
import random
import tempfile
import time
from collections.abc import Callable
from datetime import date
from pathlib import Path
from typing import get_args

from sqlalchemy import text
from sqlalchemy.orm import Session

from benchmarks.measuring import Timing, kernelproof, print_timings, time_process, write_result
from kernelproof.db import models, records
from kernelproof.db.base import Base
from kernelproof.db.connection import Database, open_database
from kernelproof.db.scores.filters import Filters
from kernelproof.db.scores.records import ViewName
from kernelproof.db.store import open_store
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
from kernelproof.workspace import DatabasePlace, address, database_place

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
OUTCOMES = (Status.CORRECT, Status.CORRECT, Status.WRONG_OUTPUT, Status.BUILD_ERROR, Status.NO_CODE)


def fill(database: Database, attempts: int, dice: random.Random) -> None:
    """Stores `attempts` attempts in transactions of some hundred."""
    names = [f"synthetic-{number}" for number in range(MODELS)]
    runs = database.write(
        lambda session: [records.run_row(session, RunSettings(model=m, verify=SETTINGS)) for m in names]
    )
    problems = [synthetic_problem(number) for number in range(PROBLEMS)]
    database.write(lambda session: [records.problem_row(session, problem) for problem in problems])
    for begin in range(0, attempts, 500):
        numbers = range(begin, min(begin + 500, attempts))
        database.write(
            lambda session, numbers=numbers: [add(session, runs, problems, n, dice) for n in numbers]
        )


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


def add(session: Session, runs: list[int], problems: list[Problem], number: int, dice: random.Random) -> None:
    """Attempt `number`: its model, problem and sample follow from the number, its outcome from the dice."""
    status = dice.choice(OUTCOMES)
    model, rest = number % MODELS, number // MODELS
    index, sample = rest % PROBLEMS, rest // PROBLEMS
    problem = problems[index]
    moment = "2026-01-01T00:00:00.000+00:00"
    attempt = models.Attempt(
        run_id=runs[model], problem=index + 1, sample=sample, turn=1, status=status, created=moment
    )
    session.add(attempt)
    session.flush()
    source = f"# synthetic candidate {number}\n" + "y = 2\n" * 700
    answer = records.response_row(session, Response(text=source, raw={"synthetic": source}))
    answer.attempt_id, answer.ordinal, answer.created = attempt.id, 1, moment
    session.add(answer)
    if status is not Status.NO_CODE:
        candidate = Candidate(source=source, sha256=sha256_text(source))
        session.add(
            records.candidate_row(session, attempt.id, Extraction(candidate=candidate, method="fence"))
        )
        verification = synthetic_verification(problem, candidate, status, dice)
        records.verification_rows(session, attempt.id, verification, "first")


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
        pace=Pace.FASTER if speedup > 1 else Pace.SLOWER,
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
       SELECT n, 1 + n % {originals} AS source, 0.5 + (n % 1000 * 7919 % 1000) / 1000.0 AS factor FROM series
     )
"""
"""New attempts by number, from 0; each is a copy of an original, `factor` times as fast."""
VARIED = {
    "attempts": {
        "id": "n + 1",
        "run_id": f"1 + n % {MODELS}",
        "problem": f"1 + n / {MODELS} % {PROBLEMS}",
        "sample": f"n / {MODELS * PROBLEMS}",
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


def multiply(database: Database, attempts: int, narrow: bool) -> None:
    """Copies the originals until there are `attempts` attempts."""
    for first in range(ORIGINALS, attempts, 50_000):
        last = min(first + 50_000, attempts)
        series = COPIES.format(first=first, last=last, originals=ORIGINALS)
        for name, varied in VARIED.items():
            table = Base.metadata.tables[name]
            left_out = SAMPLES if narrow and name == "measurements" else {}
            columns = {f'"{c.name}"': (varied | left_out).get(c.name, f't."{c.name}"') for c in table.columns}
            statement = (
                f"INSERT INTO {name} ({', '.join(columns)}) {series} SELECT {', '.join(columns.values())} "
                f"FROM copied JOIN {name} t ON {OF_ATTEMPT[name]}"
            )
            database.write(lambda session, s=statement: session.execute(text(s)).close())


def sizes(database: Database) -> tuple[int, int]:
    """Bytes that the database takes, and bytes of all its values, each written as text."""

    def measured(session: Session) -> tuple[int, int]:
        written = 0
        for table in Base.metadata.sorted_tables:
            if table.name in ("score_cells", "score_facts"):
                continue  # computed from the others
            lengths = [f'COALESCE(SUM(LENGTH(CAST(t."{c.name}" AS TEXT))), 0)' for c in table.columns]
            written += session.execute(text(f"SELECT {' + '.join(lengths)} FROM {table.name} t")).scalar_one()
        sqlite = session.get_bind().dialect.name == "sqlite"
        size = "SELECT page_count * page_size FROM pragma_page_count(), pragma_page_size()"
        query = size if sqlite else "SELECT pg_database_size(current_database())"
        return session.execute(text(query)).scalar_one(), int(written)

    return database.read(measured)


def questions(place: DatabasePlace, runs: int) -> list[Timing]:
    """Seconds within a process: packing once, then each question."""
    with open_store(place) as store:
        scores = store.scores
        asked: dict[str, Callable[[], object]] = {
            **{
                f"by {view}": lambda v=view: scores.leaderboard(views=(v,), top=20)
                for view in get_args(ViewName)
            },
            "two tables, one level": lambda: scores.leaderboard(Filters(level=1)),
            "by model, first turn, since a day": lambda: scores.leaderboard(
                Filters(turns=1, since=date(2026, 1, 1)), views=("model",)
            ),
            "compare two models": lambda: scores.comparison("synthetic-0", "synthetic-1"),
        }
        first = timed("packing and the first question", lambda: scores.leaderboard(Filters(level=1)), 1)
        return [first, *(timed(name, ask, runs) for name, ask in asked.items())]


def timed(name: str, ask: Callable[[], object], runs: int) -> Timing:
    """Asks so many times within this process."""
    wall, cpu = [], []
    for _ in range(runs):
        began, before = time.perf_counter(), time.process_time()
        ask()
        wall.append(time.perf_counter() - began)
        cpu.append(time.process_time() - before)
    return Timing(name, (), tuple(wall), tuple(cpu))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--attempts", type=int, default=10_000)
    parser.add_argument("--runs", type=int, default=9)
    parser.add_argument("--narrow", action="store_true", help="copies without raw samples")
    parser.add_argument("--db", help="an empty PostgreSQL database: postgresql+psycopg://...")
    parser.add_argument("--output", type=Path, default=Path("generated/benchmarks/leaderboard.json"))
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        place = database_place(options.db or str(Path(folder) / "attempts.sqlite"))
        begun, before = time.perf_counter(), time.process_time()
        database = open_database(place, create=True)
        fill(database, min(options.attempts, ORIGINALS), random.Random(0))
        took, written = sizes(database)
        print(f"originals: {took / 1e6:.0f} MB for {written / 1e6:.0f} MB of values", flush=True)
        multiply(database, options.attempts, options.narrow)
        size, written = sizes(database)
        database.close()
        wall, cpu = time.perf_counter() - begun, time.process_time() - before
        print(
            f"{options.attempts} synthetic attempts, {size / 1e6:.0f} MB for {written / 1e6:.0f} MB of "
            f"values, written in {wall:.0f} s ({cpu:.0f} s of this process's processor time)",
            flush=True,
        )
        asked = questions(place, options.runs)
        command = kernelproof("leaderboard", "--workspace", folder, "--db", address(place))
        timings = [
            *asked,
            time_process("kernelproof leaderboard", command, options.runs),
            time_process("kernelproof leaderboard --json", (*command, "--json"), options.runs),
            time_process("kernelproof leaderboard --level 1", (*command, "--level", "1"), options.runs),
            time_process("kernelproof leaderboard --by model", (*command, "--by", "model"), options.runs),
        ]
    print_timings(timings)
    write_result(options.output, timings, attempts=options.attempts, database_mb=size / 1e6)


if __name__ == "__main__":
    main()
