"""The filters in an address: `/?level=2&model=gpt` asks what `leaderboard --level 2 --model gpt` does."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any

from pydantic import ValidationError

from kernelproof.backends import names
from kernelproof.choices import LEVEL, TURNS, ErrorClass, Flag, Numerics, Purity, Rigor, RunKind, words_of
from kernelproof.db.scores.filters import Filters
from kernelproof.errors import UsageError
from kernelproof.types.record import explain

_CALLED = {"device": "gpu"}
"""Fields whose filter has another name."""
_FIELDS = {name: field for field, name in _CALLED.items()}
CHOICES: dict[str, tuple[str, ...]] = {
    "kind": words_of(RunKind),
    "backend": tuple(names()),
    "numerics": words_of(Numerics),
    "purity": words_of(Purity),
    "rigor": words_of(Rigor),
    "error_class": words_of(ErrorClass),
    "without": words_of(Flag),
}
NUMBERS = {"level": LEVEL, "turns": TURNS}
DAYS = ("since", "until")
FILTERS = tuple(_CALLED.get(field, field) for field in Filters.model_fields)
MOST = 200


def query_filters(query: Iterable[tuple[str, str]]) -> Filters:
    """The filters of an address. Empty values, which forms send, count as not given.

    Raises UsageError for a filter that there is not, one that is given twice, and a value that it cannot
    have; the message says what there is.
    """
    values: dict[str, Any] = {}
    for name, value in query:
        _hold(name, value)
        if not value:
            continue
        if name == "without":
            values[name] = (*values.get(name, ()), value)
        elif name in values:
            raise UsageError(f"{name} is given twice; give it once")
        else:
            values[name] = value
    try:
        return Filters.model_validate({_FIELDS.get(name, name): value for name, value in values.items()})
    except ValidationError as error:
        raise UsageError(explain(error, _CALLED)) from None


def _hold(name: str, value: str) -> None:
    if name not in FILTERS:
        near = get_close_matches(name, FILTERS, 1)
        hint = f"did you mean {near[0]}? " if near else ""
        raise UsageError(f"there is no filter {name[:MOST]!r}; {hint}there are: {', '.join(FILTERS)}")
    if len(value) > MOST:
        raise UsageError(f"{name} is longer than {MOST} characters")
    if value and name in CHOICES and value not in CHOICES[name]:
        raise UsageError(f"{name} must be one of {', '.join(CHOICES[name])}, not {value!r}")
    if value and name in NUMBERS:
        try:
            NUMBERS[name].number(value)
        except ValueError as error:
            raise UsageError(f"{name} {error}") from None


def query_of(filters: Filters) -> list[tuple[str, str]]:
    """The other way round: name and value of each filter that is set."""
    pairs: list[tuple[str, str]] = []
    for field, value in filters.model_dump(mode="json", exclude_defaults=True).items():
        values = value if isinstance(value, list) else [value]
        pairs += [(_CALLED.get(field, field), str(each)) for each in values]
    return pairs


@dataclass(frozen=True)
class Field:
    name: str
    label: str
    value: str
    kind: str = "text"
    """As HTML calls it: `text`, `number` or `date`."""
    words: tuple[str, ...] = ()
    """The values to choose from; empty where any may be typed."""


def fields(filters: Filters) -> list[Field]:
    values = dict(reversed(query_of(filters)))  # of several flags the first: a form asks for one
    kinds = dict.fromkeys(NUMBERS, "number") | dict.fromkeys(DAYS, "date")
    return [
        Field(
            name, name.replace("_", " "), values.get(name, ""), kinds.get(name, "text"), CHOICES.get(name, ())
        )
        for name in FILTERS
    ]
