"""The format of a bundle: names, limits, and JSON that holds nothing but JSON."""

from __future__ import annotations

import json
import math
import re
from typing import Any

from kernelproof.errors import UsageError
from kernelproof.hashing import sha256_json

FORMAT = "kernelproof bundle"
VERSION = 1
"""Of the format. A reader refuses every other one."""
MANIFEST = "manifest.json"
SOURCES = ("problem.py", "candidate.py", "base.py")
RECORDS = (
    *("problem.json", "prompt.json", "response.json", "extraction.json", "run.json"),
    *("verdict.json", "settings.json", "environment.json", "seeds.json"),
    *("findings.json", "builds.json", "checks.json", "measurement.json"),
)
OPTIONAL = frozenset({"base.py", "prompt.json", "environment.json", "measurement.json"})
"""The members that an attempt may lack."""
PARTS = ("settings", "environment", "seeds", "findings", "builds", "checks", "measurement")
"""Fields of a verification that are members of their own; `verdict.json` holds the others."""

MOST_FILE_BYTES = 256 << 20
"""Of a bundle as a file."""
MOST_BYTES = 512 << 20
"""Of all its members, uncompressed."""
MOST_MEMBER_BYTES = 16 << 20
MOST_ATTEMPTS = 1000
MOST_MEMBERS = 1 + MOST_ATTEMPTS * len(SOURCES + RECORDS)
MOST_DEPTH = 64
"""Of lists and tables within each other."""
MOST_VALUES = 500_000
"""Of a member: numbers, texts, lists and tables."""
_TOO_DEEP = f"its lists and tables lie more than {MOST_DEPTH} deep"

MEMBER = re.compile(
    rf"attempts/([1-9][0-9]{{0,17}})/({'|'.join(re.escape(name) for name in SOURCES + RECORDS)})"
)


class NoJson(ValueError):
    """Bytes that are not the JSON of a bundle; the message says why."""


class BadBundle(UsageError):
    """A file that is no bundle, or one that is not opened."""


def member(number: int, name: str) -> str:
    """The name of an attempt's member in the bundle."""
    return f"attempts/{number}/{name}"


def encoded(value: Any) -> bytes:
    """A value as indented ASCII JSON, keys sorted. Infinities and NaN become strings, which floats accept."""
    text = json.dumps(_without_infinities(value), indent=1, sort_keys=True, allow_nan=False)
    return f"{text}\n".encode("ascii")


def decoded(data: bytes) -> Any:
    """The value of JSON that anybody may have written.

    Raises NoJson for what is no JSON in UTF-8, numbers that no float holds, tables that name a key twice, and
    lists deeper than `MOST_DEPTH` or longer than `MOST_VALUES`.
    """
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise NoJson(f"it is not UTF-8 (byte {error.start})") from None
    try:
        value = json.loads(
            text, parse_constant=_no_constant, parse_float=_finite, object_pairs_hook=_named_once
        )
    except NoJson:
        raise
    except json.JSONDecodeError as error:
        raise NoJson(f"it is not JSON (line {error.lineno}: {error.msg})") from None
    except RecursionError:
        raise NoJson(_TOO_DEEP) from None
    except ValueError:
        raise NoJson("it holds a number with thousands of digits") from None
    _hold_size(value)
    return value


def text_of(data: bytes) -> str:
    """A source's text. Lone surrogates, which a model may write, are kept. Raises NoJson for other bytes."""
    try:
        return data.decode("utf-8", "surrogatepass")
    except UnicodeDecodeError as error:
        raise NoJson(f"it is not UTF-8 (byte {error.start})") from None


def manifest_sha256(manifest: dict[str, Any]) -> str:
    """The hash over a manifest: over all of it but the hash itself."""
    return sha256_json({key: value for key, value in manifest.items() if key != "sha256"})


def _without_infinities(value: Any) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    if isinstance(value, dict):
        return {str(key): _without_infinities(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_without_infinities(item) for item in value]
    return value


def _hold_size(value: Any) -> None:
    """Raises NoJson for what lies too deep, since later steps are recursive, and for too many values."""
    level, depth, count = [value], 0, 1
    while level := [each for each in level if isinstance(each, dict | list)]:
        depth, count = depth + 1, count + sum(map(len, level))
        if depth > MOST_DEPTH:
            raise NoJson(_TOO_DEEP)
        if count > MOST_VALUES:
            raise NoJson(f"it holds more than {MOST_VALUES:,} values")
        level = [item for each in level for item in (each.values() if isinstance(each, dict) else each)]


def _no_constant(word: str) -> Any:
    raise NoJson(f"it holds {word}, which is no number of JSON")


def _finite(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise NoJson(f"it holds the number {text[:40]}, which is too large")
    return value


def _named_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    table = dict(pairs)
    if len(table) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise NoJson(f"it names {twice[:40]!r} twice")
    return table
