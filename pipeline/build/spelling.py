"""Which names g++ takes for a misspelt one: its "did you mean", reckoned as it does (gcc/spellcheck.cc)."""

from __future__ import annotations

import re
from collections.abc import Iterable

_STEP, _CASE = 2, 1
"""What a letter more, less, other or out of order costs, and what one in the other case does."""
_RESERVED = re.compile(r"_[A-Z_]|.*__")


def nearest(name: str, others: Iterable[str], most: int | None = None) -> str | None:
    """One of `others` that g++ might hint at for `name`: close enough, and not further than `most`."""
    letters = set(name.lower())
    for other in others:
        limit = cutoff(len(name), len(other))
        limit = limit if most is None else min(limit, most)
        if abs(len(name) - len(other)) * _STEP > limit or len(letters - set(other.lower())) * _STEP > limit:
            continue
        if _RESERVED.match(other) and not name.startswith("_"):
            continue
        if distance(name, other) <= limit:
            return other
    return None


def cutoff(length: int, other: int) -> int:
    """The most distance that two names of these lengths may have."""
    longer = max(length, other)
    if longer <= 1:
        return 0
    if abs(length - other) <= 1:
        return _STEP * max(longer // 3, 1)
    return _STEP * (longer + 2) // 3


def distance(first: str, second: str) -> int:
    """The least cost of turning one name into the other."""
    rows = [list(range(0, _STEP * len(second) + 1, _STEP))]
    for i, left in enumerate(first, 1):
        row = [i * _STEP]
        for j, right in enumerate(second, 1):
            other = _CASE if left.lower() == right.lower() else _STEP
            change = 0 if left == right else other
            cost = min(rows[-1][j - 1] + change, rows[-1][j] + _STEP, row[-1] + _STEP)
            if i > 1 and j > 1 and left == second[j - 2] and first[i - 2] == right:
                cost = min(cost, rows[-2][j - 2] + _STEP)
            row.append(cost)
        rows.append(row)
    return rows[-1][-1]
