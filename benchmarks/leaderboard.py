"""How long `kernelproof leaderboard` takes over many attempts, and how much room they take:
``python -m benchmarks.leaderboard``.

Fills a database with synthetic attempts (models named `synthetic-N`, invented times), as wide as real
ones: response, source, build log, checks, raw samples. Those after the first 2,000 are copies of these with
other times; they share texts, and with `--narrow` have no raw samples.
`--turns` gives each sample so many turns, and each model's run a strategy. Then measures packing, each
question within a process, and whole processes. Measures; asserts nothing.

`--keep FILE` leaves the database there, and `--db` in its server; where they hold attempts already, nothing
is filled, and the questions are measured again. `--added` then adds a batch of so many attempts: as a new
run, and as more samples of a run that is there. It measures the first question after each, which packs.
"""

from __future__ import annotations

import argparse
import random
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import date
from pathlib import Path
from typing import get_args

from sqlalchemy import text
from sqlalchemy.orm import Session

from benchmarks.measuring import Timing, kernelproof, print_timings, time_process, write_result
from benchmarks.synthetic_attempts import ORIGINALS, Shape, add_all, fill, multiply, synthetic_run
from kernelproof.db import records
from kernelproof.db.connection import Database, open_database
from kernelproof.db.models import Base
from kernelproof.db.scores.filters import Filters
from kernelproof.db.scores.records import ViewName
from kernelproof.db.store import open_store
from kernelproof.workspace import DatabasePlace, address, database_place


def sizes(database: Database) -> tuple[int, int]:
    """Bytes that the database takes, and bytes of all its values, each written as text."""

    def measured(session: Session) -> tuple[int, int]:
        written = 0
        for table in Base.metadata.sorted_tables:
            if table.name.startswith("score_"):
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


@contextmanager
def database_at(options: argparse.Namespace) -> Iterator[DatabasePlace]:
    """Where the attempts are: as asked, else in a file that goes away."""
    with tempfile.TemporaryDirectory() as folder:
        yield database_place(options.db or str(options.keep or Path(folder) / "attempts.sqlite"))


def filled(database: Database, options: argparse.Namespace) -> tuple[int, int]:
    """Fills an empty database; how many attempts there are, and how many bytes."""
    count = text("SELECT COUNT(*) FROM attempts")
    there = database.read(lambda session: session.execute(count).scalar_one())
    if not there:
        begun, before = time.perf_counter(), time.process_time()
        fill(database, min(options.attempts, ORIGINALS), options.turns, random.Random(0))
        multiply(database, options.attempts, options.turns, options.narrow)
        wall, cpu = time.perf_counter() - begun, time.process_time() - before
        print(f"written in {wall:.0f} s ({cpu:.0f} s of this process's processor time)", flush=True)
    size, written = sizes(database)
    there = there or options.attempts
    print(f"{there} attempts, {size / 1e6:.0f} MB for {written / 1e6:.0f} MB of values", flush=True)
    return there, size


def after_batches(place: DatabasePlace, options: argparse.Namespace) -> list[Timing]:
    """Seconds of the first question after a batch: of a new run, and of more samples of the first run."""
    timings, dice = [], random.Random(1)
    database = open_database(place, create=False)
    first, last = database.read(
        lambda s: s.execute(text("SELECT MAX(sample) + 1, (SELECT MAX(id) FROM runs) FROM attempts")).one()
    )
    settings = synthetic_run(f"synthetic-{last}", last, options.turns)
    new = database.write(lambda session: records.ensure_run(session, settings))
    batches = {
        "a new run": Shape((new,), options.turns),
        "a run that is there": Shape((1,), options.turns, first),
    }
    for name, shape in batches.items():
        add_all(database, shape, options.added, dice)
        with open_store(place) as store:
            timings += [
                timed(f"{when} {options.added} attempts of {name}", store.scores.leaderboard, 1)
                for when in ("first question after", "second question after")
            ]
    database.close()
    return timings


def options_given() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--attempts", type=int, default=10_000)
    parser.add_argument("--turns", type=int, default=1, help="of each sample")
    parser.add_argument("--runs", type=int, default=9)
    parser.add_argument("--narrow", action="store_true", help="copies without raw samples")
    parser.add_argument(
        "--added", type=int, default=0, help="attempts of each batch that is added at the end"
    )
    where = parser.add_mutually_exclusive_group()
    where.add_argument("--keep", type=Path, help="the file of the database, which stays")
    where.add_argument("--db", help="a PostgreSQL database: postgresql+psycopg://...")
    parser.add_argument("--output", type=Path, default=Path("generated/benchmarks/leaderboard.json"))
    return parser.parse_args()


def main() -> None:
    options = options_given()
    with database_at(options) as place:
        database = open_database(place, create=True)
        attempts, size = filled(database, options)
        database.close()
        timings = questions(place, options.runs)
        with tempfile.TemporaryDirectory() as folder:
            command = kernelproof("leaderboard", "--workspace", folder, "--db", address(place))
            timings += [
                time_process("kernelproof leaderboard", command, options.runs),
                time_process("kernelproof leaderboard --json", (*command, "--json"), options.runs),
                time_process("kernelproof leaderboard --level 1", (*command, "--level", "1"), options.runs),
                time_process("kernelproof leaderboard --by model", (*command, "--by", "model"), options.runs),
            ]
        timings += after_batches(place, options) if options.added else []
    print_timings(timings)
    write_result(options.output, timings, attempts=attempts, turns=options.turns, database_mb=size / 1e6)


if __name__ == "__main__":
    main()
