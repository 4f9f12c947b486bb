"""Operations on plain values that a source spells out: text, numbers, lists, dictionaries. Nothing of a
candidate runs, and what a value may grow to is bounded before it is made."""

from __future__ import annotations

import ast
import hashlib
import operator
import posixpath
import re
import string
import textwrap
from collections.abc import Callable
from typing import Any

from kernelproof.types.build import MAX_SOURCE_CHARS

MAX_ITEMS = 1000
"""Of a list or dictionary."""
_MAX_NUMBER = 1 << 63
_SPEC = re.compile(r"0?\d{0,2}(\.\d{1,2})?[a-zA-Z%]?")
"""Format specifications that cannot make a text much longer than the value."""
_PERCENT = re.compile(r"%(?:\((\w+)\))?(?:\.\d{1,2})?([sdifg%])")
_HASHES = frozenset({"md5", "sha1", "sha256", "sha512"})
_STRIPS = frozenset({"strip", "lstrip", "rstrip", "removeprefix", "removesuffix"})
_PLAIN = frozenset({"upper", "lower", "title", "capitalize", "splitlines", "split", "encode", "decode"})
_ASKS = frozenset({"startswith", "endswith", "isidentifier", "isdigit"})


class Unreadable(Exception):
    """The source does not show this value."""


def binary(op: ast.operator, left: Any, right: Any) -> Any:
    """`left op right`. Raises Unreadable."""
    name = type(op).__name__
    if name == "Add" and isinstance(left, str) and isinstance(right, str):
        return left + right
    if name == "Add" and type(left) is type(right) and isinstance(left, list | tuple):
        return _bounded(left + right)
    if name == "Mod" and isinstance(left, str):
        return percent(left, right)
    if name == "BitOr" and isinstance(left, dict) and isinstance(right, dict):
        return left | right
    if name == "Mult" and isinstance(left, str) and isinstance(right, int):
        _require_short(len(left) * right)
        return left * right
    if name == "Div" and isinstance(left, Folder) and isinstance(right, str):
        return Folder(posixpath.join(left, right))
    if not (_is_number(left) and _is_number(right)):
        raise Unreadable
    return _number(name, left, right)


def _number(name: str, left: Any, right: Any) -> Any:
    known: dict[str, Callable[[Any, Any], Any]] = {
        "Add": operator.add,
        "Sub": operator.sub,
        "Mult": operator.mul,
        "Div": operator.truediv,
        "FloorDiv": operator.floordiv,
        "Mod": operator.mod,
    }
    if name == "Pow" and 0 <= right <= 64 and abs(left) <= 64:
        return left**right
    if name == "LShift" and isinstance(left, int) and isinstance(right, int) and 0 <= right < 64:
        return left << right
    if name not in known:
        raise Unreadable
    try:
        value = known[name](left, right)
    except (ArithmeticError, TypeError, ValueError):
        raise Unreadable from None
    if isinstance(value, int) and abs(value) >= _MAX_NUMBER:
        raise Unreadable
    return value


def percent(text: str, value: Any) -> str:
    """`text % value`, for `%s`, `%d`, `%f` and their like. Raises Unreadable."""
    if len(_PERCENT.findall(text)) != text.replace("%%", "").count("%") + text.count("%%"):
        raise Unreadable
    items = iter(value if isinstance(value, tuple) else (value,))
    longest = max(map(_length, value.values() if isinstance(value, dict) else (value,)), default=0)
    _require_short(len(text) + text.count("%") * longest)

    def one(match: re.Match[str]) -> str:
        if match[2] == "%":
            return "%"
        item = value.get(match[1]) if match[1] and isinstance(value, dict) else next(items, None)
        _require_plain(item)
        try:
            return match[0].replace(f"({match[1]})", "") % item
        except (TypeError, ValueError, OverflowError):
            raise Unreadable from None

    made = _PERCENT.sub(one, text)
    if next(items, None) is not None and not isinstance(value, dict):
        raise Unreadable
    return made


def formatted(value: Any, spec: str = "") -> str:
    """`format(value, spec)` of a text or a number. Raises Unreadable."""
    _require_plain(value)
    if _SPEC.fullmatch(spec) is None:
        raise Unreadable
    try:
        return format(value, spec)
    except (ValueError, OverflowError):
        raise Unreadable from None


def filled(text: str, arguments: list[Any], named: dict[str, Any]) -> str:
    """`text.format(*arguments, **named)`, without attributes or items of them. Raises Unreadable."""
    parts: list[str] = []
    number = 0
    longest = max(map(_length, (*arguments, *named.values())), default=0)
    _require_short(len(text) + text.count("{") * longest)
    try:
        for literal, field, spec, conversion in string.Formatter().parse(text):
            parts.append(literal)
            if field is None:
                continue
            if conversion not in (None, "s"):
                raise Unreadable
            key = field or str(number)
            number += not field
            value = arguments[int(key)] if key.isdigit() else named[key]
            parts.append(formatted(value, spec or ""))
    except (ValueError, KeyError, IndexError):
        raise Unreadable from None
    return "".join(parts)


class Folder(str):
    """A path as `pathlib` makes it: `/` joins, and text that is formatted is the path."""


def method(value: Any, name: str, arguments: list[Any], named: dict[str, Any]) -> Any:
    """`value.name(*arguments, **named)` of a text, bytes, list or dictionary. Raises Unreadable."""
    if isinstance(value, str):
        return _text_method(value, name, arguments, named)
    if isinstance(value, bytes) and name == "decode" and not named:
        return value.decode("utf-8", "replace")
    if isinstance(value, dict) and not named:
        if name in ("keys", "values", "copy") and not arguments:
            return {"keys": list(value), "values": list(value.values()), "copy": dict(value)}[name]
        if name == "items" and not arguments:
            return [tuple(item) for item in value.items()]
        if name == "get" and 1 <= len(arguments) <= 2:
            return value.get(_key(arguments[0]), arguments[1] if len(arguments) == 2 else None)
    if isinstance(value, list) and name == "copy":
        return list(value)
    raise Unreadable


def _text_method(value: str, name: str, arguments: list[Any], named: dict[str, Any]) -> Any:
    if name == "format":
        return filled(value, arguments, named)
    if named:
        raise Unreadable
    if name == "join" and len(arguments) == 1 and isinstance(arguments[0], list | tuple):
        _require_texts(arguments[0])
        _require_short(sum(map(len, arguments[0])) + len(value) * len(arguments[0]))
        return value.join(arguments[0])
    _require_texts(arguments)
    if name == "replace" and len(arguments) == 2:
        old, new = arguments
        _require_short((value.count(old) if old else len(value) + 1) * len(new))
        return value.replace(old, new)
    if name in _STRIPS | _PLAIN | _ASKS and len(arguments) <= 1:
        try:
            return getattr(value, name)(*arguments)
        except (TypeError, ValueError, LookupError):
            raise Unreadable from None
    raise Unreadable


def function(path: str, arguments: list[Any], named: dict[str, Any]) -> Any:
    """What a function of Python's own gives, by its full name. Raises Unreadable."""
    module, _, name = path.rpartition(".")
    if module == "hashlib" and name in _HASHES and len(arguments) == 1 and isinstance(arguments[0], bytes):
        return Digest(hashlib.new(name, arguments[0], usedforsecurity=False).hexdigest())
    if path in ("os.path.join", "posixpath.join") and arguments:
        _require_texts(arguments)
        return posixpath.join(*arguments)
    if path == "textwrap.dedent" and len(arguments) == 1:
        _require_texts(arguments)
        return textwrap.dedent(arguments[0])
    if path == "textwrap.indent" and len(arguments) == 2:
        _require_texts(arguments)
        _require_short((arguments[0].count("\n") + 1) * len(arguments[1]))
        return textwrap.indent(*arguments)
    if path == "pathlib.Path" and len(arguments) == 1:
        _require_texts(arguments)
        return Folder(arguments[0])
    if module == "builtins":
        return _builtin(name, arguments, named)
    raise Unreadable


class Digest(str):
    """A hash, of which only `hexdigest` is asked."""


def _builtin(name: str, arguments: list[Any], named: dict[str, Any]) -> Any:
    if name == "dict" and len(arguments) <= 1 and all(isinstance(item, dict) for item in arguments):
        return {**(arguments[0] if arguments else {}), **named}
    if named:
        raise Unreadable
    if name == "str" and len(arguments) == 1:
        return formatted(arguments[0])
    if name == "range" and 1 <= len(arguments) <= 3 and all(type(item) is int for item in arguments):
        return _bounded(range(*arguments)) if 0 not in arguments[2:] else []
    if not arguments or not isinstance(arguments[0], list | tuple | dict | str | int | float):
        raise Unreadable
    first = arguments[0]
    many = list(first) if isinstance(first, list | tuple | dict) else None
    if name == "len" and isinstance(first, list | tuple | dict | str):
        return len(first)
    if name in ("list", "tuple", "enumerate", "reversed") and many is not None and len(arguments) == 1:
        made = {
            "list": many,
            "tuple": tuple(many),
            "reversed": many[::-1],
            "enumerate": list(enumerate(many)),
        }
        return made[name]
    if name == "zip" and all(isinstance(item, list | tuple) for item in arguments):
        return list(zip(*arguments, strict=False))
    if name in ("int", "float", "bool") and len(arguments) == 1 and isinstance(first, int | float):
        return int(first) if name == "int" else float(first) if name == "float" else bool(first)
    if name in ("min", "max") and all(map(_is_number, many or arguments)):
        return (min if name == "min" else max)(many or arguments)
    raise Unreadable


def item(value: Any, key: Any) -> Any:
    """`value[key]`, `key` a slice too. Raises Unreadable."""
    try:
        if isinstance(value, dict):
            return value[_key(key)]
        if isinstance(value, str | list | tuple) and isinstance(key, int | slice):
            return value[key]
    except (LookupError, TypeError, ValueError):
        pass
    raise Unreadable


def _key(key: Any) -> Any:
    if isinstance(key, str | int | float | None):
        return key
    raise Unreadable


def _bounded(items: Any) -> Any:
    if len(items) > MAX_ITEMS:
        raise Unreadable
    return list(items) if isinstance(items, range) else items


def _length(value: Any) -> int:
    if isinstance(value, list | tuple):
        return sum(map(_length, value))
    return len(value) if isinstance(value, str) else 64


def _require_short(length: int) -> None:
    if length > MAX_SOURCE_CHARS:
        raise Unreadable


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float)


def _require_plain(value: Any) -> None:
    fits = isinstance(value, str | float | bool | None) or (
        isinstance(value, int) and abs(value) < _MAX_NUMBER
    )
    if not fits:
        raise Unreadable


def _require_texts(values: Any) -> None:
    if not all(isinstance(value, str) for value in values):
        raise Unreadable


def longer(method: str, kept: Any, more: Any) -> Any:
    """The list or dictionary after `append`, `extend` or `update`. Raises Unreadable."""
    if method == "append" and isinstance(kept, list) and len(kept) < MAX_ITEMS:
        return [*kept, more]
    if method == "extend" and isinstance(kept, list) and isinstance(more, list | tuple):
        return [*kept, *more][:MAX_ITEMS]
    if method == "update" and isinstance(kept, dict) and isinstance(more, dict):
        return {**kept, **more}
    raise Unreadable
