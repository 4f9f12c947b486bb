"""Long lists in portions: a database takes only so many values in one statement."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import TypeVar

T = TypeVar("T")

PORTION = 500
"""Values in one statement, or rows that are read at once."""


def portions(items: Iterable[T], size: int = PORTION) -> Iterator[list[T]]:
    """The items in their order, `size` at a time; the last portion may be smaller."""
    rest = iter(items)
    return iter(lambda: list(islice(rest, size)), [])
