"""What all records share: they are frozen, refuse unknown fields, and name a backend alike. `explain` says
what is wrong with a value that a user gave, in our words: pydantic's never reach a user.

Example: of `trials=0` pydantic says "1 validation error for VerifySettings trials Input should be greater
than or equal to 1 [type=greater_than_equal ...] For further information visit ...". `explain` says
"trials must be 1 or more, not 0".
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from difflib import get_close_matches
from itertools import groupby
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, ConfigDict, ValidationError, ValidationInfo, WithJsonSchema

from kernelproof.backends import BACKENDS, names


class FrozenRecord(BaseModel):
    """A frozen record. Unknown fields are an error: a record that another version wrote is not guessed at."""

    model_config = ConfigDict(frozen=True, extra="forbid")


STORED = {"stored": True}
"""The context in which stored records are validated: the package of their backend may be gone meanwhile."""


def _known(name: str, info: ValidationInfo) -> str:
    if name not in BACKENDS and info.context != STORED:
        raise ValueError(f"there is no such backend; there are: {', '.join(names())}")
    return name


BackendName = Annotated[
    str, AfterValidator(_known), WithJsonSchema({"enum": list(names()), "type": "string"})
]


MOST_CHARACTERS = 60
"""Most characters of a value in a message; a longer one is cut."""
MOST_MISTAKES = 5
"""That one sentence names."""

Place = tuple[int | str, ...]


def explain(error: ValidationError, names: Mapping[str, str] | None = None, known: Iterable[str] = ()) -> str:
    """One line that names each setting that is wrong, what it may be, and what it is.

    `names`: a field's name, or its dotted path, to what the user calls it, as in
    `{"measure_seconds": "--seconds"}`. The empty name stands for the whole record.
    `known`: names that there are. A name that there is not gets the one that was likely meant.
    """
    mistakes = [_mistake(place, errors, names or {}, known) for place, errors in _by_place(error)]
    told, rest = mistakes[:MOST_MISTAKES], len(mistakes) - MOST_MISTAKES
    return "; ".join([*told, f"and {rest} more"] if rest > 0 else told)


def _by_place(error: ValidationError) -> list[tuple[Place, list[Any]]]:
    """The errors of each value. A union's members each have one: (`response`, `str`), (`response`, `int`)."""
    errors = error.errors(include_url=False)
    return [(place, list(group)) for place, group in groupby(errors, lambda each: _place(each, errors))]


def _place(one: Any, errors: list[Any]) -> Place:
    place: Place = one["loc"]
    above, last = place[:-1], place[-1] if place else 0
    if not above or not isinstance(last, str) or not _MEMBER.fullmatch(last):
        return place
    others = [each for each in errors if each["loc"][: len(above)] == above]
    alike = len(others) > 1 and all(each["input"] is one["input"] for each in others)
    return above if alike else place


_MEMBER = re.compile(
    r"str|int|float|bool|none|bytes|dict|list|tuple|.*\[.*\]|(function|constrained)-.*", re.S
)
"""How pydantic calls the members of a union."""


def _mistake(place: Place, errors: list[Any], names: Mapping[str, str], known: Iterable[str]) -> str:
    name, value, kind = _named(place, names), shown(errors[0]["input"]), errors[0]["type"]
    if kind in ("extra_forbidden", "unexpected_keyword_argument"):
        near = get_close_matches(str(place[-1]), list(known), 1)
        where = f" in {_named(place[:-1], names)}" if place[:-1] else ""
        return f"there is no {_plain(str(place[-1]))}{where}" + (f"; did you mean {near[0]}?" if near else "")
    if kind == "missing":
        return f"{name} is missing"
    if kind in ("value_error", "assertion_error"):
        said, is_table = str(errors[0]["ctx"]["error"]), isinstance(errors[0]["input"], dict)
        if name and said.startswith("must "):
            return f"{name} {said}"
        return f"{name if is_table else f'{name} {value}'}: {said}" if name else said
    allowed = " or ".join(dict.fromkeys(_allowed(each) for each in errors))
    return f"{name or names.get('', 'it')} must be {allowed}, not {value}"


def _named(place: Place, names: Mapping[str, str]) -> str:
    """`timeout`, or `item 2 of models: timeout`. Items are counted from 1."""
    words, path = "", ""
    for part in place:
        if isinstance(part, int):
            words = f"item {part + 1} of {words or 'the list'}"
            continue
        path = f"{path}.{part}" if path else part
        if path in names:
            words = names[path]
        else:
            joint = ": " if words.startswith("item ") else "."
            words = f"{words}{joint}{_plain(part)}" if words else _plain(part)
    return words


def _plain(name: str) -> str:
    """A name that somebody may have given: quoted where it is not one."""
    return name if re.fullmatch(r"[\w.-]{1,80}", name) else shown(name)


def shown(value: object) -> str:
    """A value as it was given; of a long one the beginning, of a list or a record only that it is one."""
    match value:
        case None:
            return "nothing"
        case dict():
            return "a table"
        case list() | tuple() | set() | frozenset():
            return "a list" if value else "an empty list"
        case str() | bytes():
            cut = value[:MOST_CHARACTERS]
            return repr(cut) + ("..." if len(value) > MOST_CHARACTERS else "")
        case bool() | int() | float():
            return repr(value) if not isinstance(value, int) or abs(value) < 10**30 else "so large a number"
    return f"a {type(value).__name__}"


def _allowed(error: Any) -> str:
    context = error.get("ctx", {})
    wording = _WORDINGS.get(error["type"])
    return wording(context) if wording else _FAMILIES.get(error["type"].partition("_")[0], "another value")


def _of(text: str) -> Callable[[Any], str]:
    return lambda context: text.format(**{name: _number(value) for name, value in context.items()})


def _number(value: object) -> object:
    """A bound without the `.0` that makes it a float."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _items(context: Any) -> str:
    length = context.get("min_length", context.get("max_length"))
    more = "or more" if "min_length" in context else "or fewer"
    return f"a list of {length} {more}"


_WORDINGS: dict[str, Callable[[Any], str]] = {
    "greater_than": _of("more than {gt}"),
    "greater_than_equal": _of("{ge} or more"),
    "less_than": _of("less than {lt}"),
    "less_than_equal": _of("{le} or less"),
    "multiple_of": _of("a multiple of {multiple_of}"),
    "finite_number": _of("a finite number"),
    "literal_error": _of("{expected}"),
    "enum": _of("{expected}"),
    "string_unicode": _of("written in whole characters"),
    "string_pattern_mismatch": _of("text like {pattern}"),
    "string_too_short": lambda context: _characters(context["min_length"], "or more"),
    "string_too_long": lambda context: _characters(context["max_length"], "or fewer"),
    "too_short": _items,
    "too_long": _items,
}

_FAMILIES = {
    "int": "a whole number",
    "float": "a number",
    "decimal": "a number",
    "bool": "true or false",
    "string": "text",
    "bytes": "text",
    "list": "a list",
    "tuple": "a list",
    "set": "a list",
    "frozen": "a list",
    "iterable": "a list",
    "dict": "a table of names and values",
    "mapping": "a table of names and values",
    "model": "a table of names and values",
    "dataclass": "a table of names and values",
    "path": "a path",
    "none": "left out",
    "url": "a URL",
    "date": "a date",
    "time": "a time",
    "datetime": "a date and time",
    "json": "JSON",
}
"""The first word of an error's type, for those that only say which kind of value is wanted."""


def _characters(count: int, more: str) -> str:
    return (
        "text that is not empty" if (count, more) == (1, "or more") else f"text of {count} characters {more}"
    )
