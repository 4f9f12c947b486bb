"""Which attempts an export holds: those that count on the leaderboard under the same filters, each turn."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from sqlalchemy import Connection

from kernelproof.db.scores.asking import selected
from kernelproof.db.scores.filters import Filters
from kernelproof.db.scores.layout import Ints, Truths
from kernelproof.types import Setting


class ChosenAttempt(NamedTuple):
    """An attempt under one setting."""

    attempt_id: int
    verification_id: int | None
    """The verification that counts there; None where there is none."""
    run_id: int
    problem_id: str
    setting: Setting
    decides: bool
    """Whether it decides about its sample: its fastest correct turn, else its last one."""


@dataclass(frozen=True)
class Chosen:
    """Finished attempts, in a few bytes each: by run, problem, sample, setting and turn."""

    attempts: Ints
    verifications: Ints
    """0 for none."""
    runs: Ints
    problems: Ints
    """Numbers of `problem_ids`."""
    rules: Ints
    """Numbers of `settings`."""
    decides: Truths
    problem_ids: dict[int, str]
    settings: list[Setting]

    def __len__(self) -> int:
        return len(self.attempts)

    def __iter__(self) -> Iterator[ChosenAttempt]:
        return (self[place] for place in range(len(self)))

    def __getitem__(self, place: int) -> ChosenAttempt:
        return ChosenAttempt(
            attempt_id=int(self.attempts[place]),
            verification_id=int(self.verifications[place]) or None,
            run_id=int(self.runs[place]),
            problem_id=self.problem_ids[int(self.problems[place])],
            setting=self.settings[int(self.rules[place])],
            decides=bool(self.decides[place]),
        )

    def only(self, places: Ints | Truths) -> Chosen:
        """The same with some of them, or in another order."""
        return Chosen(
            attempts=self.attempts[places],
            verifications=self.verifications[places],
            runs=self.runs[places],
            problems=self.problems[places],
            rules=self.rules[places],
            decides=self.decides[places],
            problem_ids=self.problem_ids,
            settings=self.settings,
        )

    def by_attempt(self) -> Chosen:
        """The same by number of the attempt."""
        return self.only(np.argsort(self.attempts, kind="stable"))

    def deciding(self) -> Chosen:
        """Those that decide about their sample."""
        return self.only(self.decides)


def chosen(connection: Connection, filters: Filters) -> Chosen:
    """The finished attempts that pass the filters."""
    turns = selected(connection, filters)
    samples = turns.samples()
    turns = turns.only(turns.facts.finished[turns.rows["facts"]])
    many = max(len(turns.settings), 1)
    key = turns.rows["attempt"].astype(np.int64) * many + turns.rule
    deciding = samples.rows["attempt"].astype(np.int64) * many + samples.rule
    return Chosen(
        attempts=turns.rows["attempt"],
        verifications=turns.rows["verification"],
        runs=turns.rows["run"],
        problems=turns.rows["problem"],
        rules=turns.rule,
        decides=np.isin(key, deciding),
        problem_ids={number: problem.problem_id for number, problem in turns.book.problems.items()},
        settings=turns.settings,
    )
