"""The rewards of training pairs: one formula for each name."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, get_args

from kernelproof.choices import RewardName
from kernelproof.report.export.gathering import Row
from kernelproof.types import Status
from kernelproof.types.measurement import resolved

SHARE_OF_CORRECT = 0.3


class Reward(NamedTuple):
    """A formula."""

    formula: str
    """In words, for the documentation."""
    of: Callable[[Row], float | None]
    """Of a judged attempt; None where the formula needs a time that was not measured."""


def _score(row: Row) -> float | None:
    return None if row.measured is None else row.measured.claimed


def _speedup(row: Row) -> float | None:
    return None if row.measured is None else resolved(row.measured.speedup, row.measured.pace)


def _both(row: Row) -> float | None:
    speedup = _speedup(row)
    return None if speedup is None else SHARE_OF_CORRECT + speedup


def _if_correct(of: Callable[[Row], float | None]) -> Callable[[Row], float | None]:
    return lambda row: of(row) if row.status is Status.CORRECT else 0.0


REWARDS: dict[RewardName, Reward] = {
    "score": Reward(
        "The lower end of the speedup's 95 % interval, at most 1 where the pace is unresolved; 0 where the "
        "program is not correct. The leaderboard ranks by it.",
        _if_correct(_score),
    ),
    "correct": Reward("1 where the program is correct, else 0.", _if_correct(lambda row: 1.0)),
    "speedup": Reward(
        "The speedup, at most 1 where the pace is unresolved; 0 where the program is not correct.",
        _if_correct(_speedup),
    ),
    "correct-and-speedup": Reward(
        f"{SHARE_OF_CORRECT} and the speedup, at most 1 where the pace is unresolved; 0 where the program is "
        "not correct. A correct program is worth more than a wrong one, however slow it is.",
        _if_correct(_both),
    ),
}
assert REWARDS.keys() == set(get_args(RewardName))
