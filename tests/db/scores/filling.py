"""Random attempts, stored quickly: one transaction for all of them."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import Any

from hypothesis import strategies as st
from sqlalchemy.orm import Session

from kernelproof.db import attempts, models, records
from kernelproof.db.store import Store, open_store
from kernelproof.types import Interval, Measurement, Pace, RunSettings, Status
from tests.db import samples
from tests.db.scores.reference import Turn

STATUSES = ("correct", "correct", "correct", "wrong_output", "build_error", "infrastructure_error", "no_code")
MOMENT = "2026-01-01T00:00:00.000+00:00"

UNPACKED = """
DELETE FROM score_cells; DELETE FROM score_facts;
INSERT OR IGNORE INTO score_changes SELECT DISTINCT run_id, problem, sample FROM attempts;
"""
"""Empties the leaderboard's copy in a file."""


@contextmanager
def fresh(empty: Path, folder: Path) -> Iterator[Store]:
    """A store in a file that is there for one example."""
    path = folder / "example.sqlite"
    for file in folder.glob("example.sqlite*"):
        file.unlink()
    shutil.copy(empty, path)
    with open_store(path, create=False) as store:
        yield store


def words(turn: Turn) -> str:
    """Words of an attempt's own, in its question and its answer."""
    return f"{turn.problem}, sample {turn.sample}, turn {turn.turn}"


def turns(problems: int = 4, samples_each: int = 6, most_turns: int = 3) -> st.SearchStrategy[list[Turn]]:
    """Attempts of one model: some samples of some problems, each with some turns."""
    outcome = st.tuples(
        st.sampled_from(STATUSES),
        st.one_of(st.none(), st.sampled_from((0.4, 0.5, 0.8, 0.9, 1.0, 1.1, 1.5, 2.0, 2.5))),
        st.booleans(),
    )
    series = st.lists(outcome, min_size=1, max_size=most_turns)
    each = st.lists(series, min_size=0, max_size=samples_each)
    return st.lists(each, min_size=1, max_size=problems).map(_numbered).filter(bool)


def _numbered(drawn: list[list[list[tuple[str, float | None, bool]]]]) -> list[Turn]:
    numbers = count(1)
    return [
        Turn(
            *(next(numbers), f"level1/{problem}", sample, turn, status),
            *((speedup, speedup * 0.99, unresolved) if speedup and status == "correct" else ()),
        )
        for problem, all_samples in enumerate(drawn, start=1)
        for sample, series in enumerate(all_samples)
        for turn, (status, speedup, unresolved) in enumerate(series, start=1)
    ]


def fill(store: Store, run: RunSettings, made: Sequence[Turn], **verification: Any) -> list[int]:
    """Stores the attempts of a run; their numbers."""
    return store._database.write(lambda session: _fill(session, run, made, verification))


def _fill(session: Session, run: RunSettings, made: Sequence[Turn], more: dict[str, Any]) -> list[int]:
    run_id = records.ensure_run(session, run)
    numbers = []
    for turn in made:
        problem = samples.problem(int(turn.problem.rpartition("/")[2]))
        number = records.ensure_problem(session, problem)
        row = models.Attempt(run_id=run_id, problem=number, sample=turn.sample, turn=turn.turn)
        row.status, row.created = turn.status, MOMENT
        row.prompt = records.ensure_prompt(session, samples.prompt(f"Question on {words(turn)}"))
        session.add(row)
        session.flush()
        numbers.append(row.id)
        answer = samples.response(f"Answer on {words(turn)}")
        attempts.append(session, row.id, records.unsaved_response(session, answer))
        if turn.status != "no_code":
            judged = samples.verification(problem, Status(turn.status), verify=run.verify, **more)
            measured = judged.model_copy(
                update={"builds": (), "checks": (), "measurement": measurement(turn)}
            )
            records.add_verification(session, row.id, measured, "first")
    return numbers


def measurement(turn: Turn) -> Measurement | None:
    """What was measured of an attempt."""
    if turn.speedup is None or turn.low is None:
        return None
    pace = Pace.UNRESOLVED if turn.unresolved else Pace.FASTER if turn.low > 1 else Pace.SLOWER
    interval = Interval(low=turn.low, high=turn.speedup * 1.01)
    return samples.measurement(turn.speedup).model_copy(update={"pace": pace, "speedup_interval": interval})
