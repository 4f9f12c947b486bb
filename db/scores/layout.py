"""The rows that scores are computed from: records, which `kernelproof.db.scores.packing` packs."""

from __future__ import annotations

import math
from functools import cached_property
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

Records = NDArray[Any]
"""Records of the type ROW, by run, problem, sample, turn and verification."""
Ints = NDArray[Any]
Floats = NDArray[Any]
Truths = NDArray[Any]

ROW = np.dtype(
    [
        ("attempt", "<i8"),
        ("verification", "<i8"),  # 0: none
        ("run", "<i4"),
        ("problem", "<i4"),
        ("sample", "<i4"),
        ("turn", "<i4"),
        ("facts", "<i4"),  # the row of `score_facts`
        ("answers", "<i4"),  # answers that were asked and paid for
        ("unknown_tokens", "<i4"),  # of these, those without token counts
        ("unknown_cost", "<i4"),
        ("created", "<f8"),  # Unix time
        ("tokens", "<f8"),
        ("cost", "<f8"),  # US dollars
        ("speedup", "<f8"),  # from here on NaN where nothing was measured
        ("low", "<f8"),
        ("high", "<f8"),
        ("candidate_ms", "<f8"),
        ("baseline_ms", "<f8"),
        ("compile_speedup", "<f8"),
        ("compile_low", "<f8"),
        ("compile_high", "<f8"),
        ("fraction", "<f8"),  # of the roofline
    ]
)
"""One verification of an attempt, or an attempt without any. Other columns need a migration that empties
`score_cells` and lists all samples in `score_changes`."""

CHUNK = 1024
"""Samples of a run's problem that are kept together."""


class Source(Protocol):
    """Records that hand out their columns."""

    def __len__(self) -> int: ...

    def column(self, name: str) -> NDArray[Any]:
        """A column of all records, in their order."""

    def record(self, row: int) -> dict[str, Any]:
        """One of them, by column."""


class Rows:
    """Some of the records, in some order. Columns are read when they are asked for."""

    def __init__(self, source: Source, at: Ints | None = None, above: Rows | None = None) -> None:
        """`at`: the places of these rows; None for all records in their order. `above`: the rows that hold
        all columns."""
        self._source, self._at, self._above = source, at, above
        self._columns: dict[str, NDArray[Any]] = {}

    def __len__(self) -> int:
        return len(self._source) if self._at is None else len(self._at)

    def __getitem__(self, column: str) -> NDArray[Any]:
        if column not in self._columns:
            if self._at is None or self._above is None:
                self._columns[column] = self._source.column(column)
            else:
                self._columns[column] = self._above[column][self._at]
        return self._columns[column]

    @cached_property
    def sample(self) -> Ints:
        """A number for each row that grows by one from sample to sample; rows are by run, problem and
        sample."""
        return steps(*(self[name] for name in ("run", "problem", "sample")))

    @property
    def one_each(self) -> bool:
        """Whether each sample has one row."""
        return len(self) == 0 or int(self.sample[-1]) + 1 == len(self)

    def record(self, row: int) -> dict[str, Any]:
        """One of the records."""
        return self._source.record(row if self._at is None else int(self._at[row]))

    def only(self, chosen: Truths | Ints) -> Rows:
        """Those that are true, or the numbered ones."""
        if chosen.dtype == bool:
            if chosen.all():
                return self
            chosen = np.flatnonzero(chosen)
        all_rows = self._above or self
        return Rows(self._source, chosen if self._at is None else self._at[chosen], all_rows)


def steps(*columns: NDArray[Any]) -> Ints:
    """A number for each row that grows by one wherever one of the columns differs from the row before."""
    if len(columns[0]) == 0:
        return np.zeros(0, np.int64)
    changed = np.zeros(len(columns[0]), bool)
    for column in columns:
        changed[1:] |= column[1:] != column[:-1]
    return np.cumsum(changed)


def starts(numbers: NDArray[Any]) -> Ints:
    """Where each run of equal numbers begins."""
    if len(numbers) == 0:
        return np.zeros(0, np.int64)
    found: Ints = np.concatenate(([0], np.flatnonzero(numbers[1:] != numbers[:-1]) + 1))
    return found


def distinct(numbers: Ints) -> Ints:
    """The numbers that occur, in their order. Fast where they are nearly in order already."""
    if not (numbers[1:] >= numbers[:-1]).all():
        numbers = np.sort(numbers, kind="stable")
    return numbers[starts(numbers)]


def dense(*columns: tuple[Ints, int]) -> tuple[Ints, list[tuple[int, ...]]]:
    """Numbers without gaps for the combinations of some columns that occur, and the combinations.

    Each column comes with the number of its values.
    """
    code = np.zeros(len(columns[0][0]), np.int64)
    for column, count in columns:
        code = code * max(count, 1) + column
    possible = math.prod(max(count, 1) for _, count in columns)
    if possible <= 10_000_000:  # counting is faster than sorting
        present = np.flatnonzero(np.bincount(code, minlength=1))
        numbers = np.zeros(possible, np.int64)
        numbers[present] = np.arange(len(present))
        number = numbers[code]
    else:
        present, number = np.unique(code, return_inverse=True)
    combinations = []
    for each in present.tolist():
        parts = []
        for _, count in reversed(columns):
            each, part = divmod(each, max(count, 1))
            parts.append(part)
        combinations.append(tuple(reversed(parts)))
    return number.astype(np.int64), combinations
