"""One spelling of a kernel's name, from the compiler's mangled one and from a profiler's demangled one.

`_Z4softILi4EEvPKfl` and `void soft<4>(float const*, long)` are both `soft<4>`. Namespaces are left out.
"""

from __future__ import annotations

import re

_LITERAL = re.compile(r"L([bijlmcshtxy])(n?)(\d+)E")
_TYPES = {
    "b": "bool",
    "c": "char",
    "a": "signed char",
    "h": "unsigned char",
    "s": "short",
    "f": "float",
    "t": "unsigned short",
    "i": "int",
    "j": "unsigned int",
    "l": "long",
    "m": "unsigned long",
    "x": "long long",
    "y": "unsigned long long",
    "d": "double",
}
_LENGTH = re.compile(r"\d{1,4}")
_HIDDEN = re.compile(r"_GLOBAL__N|_INTERNAL_")
"""Parts of mangled names that stand for a file: of an anonymous namespace, of `static`."""
_CAST = re.compile(r"\((?:unsigned |signed )?(?:bool|int|long|char|short|long long)\)")
_ANONYMOUS = "(anonymous namespace)::"


def of_mangled(name: str) -> str:
    """`soft<4>` of `_Z4softILi4EEvPKfl`; `soft` where its template arguments are not simple ones; the name
    itself where it cannot be read."""
    if not name.startswith("_Z"):
        return name
    at = 2
    nested = name[at : at + 1] == "N"
    at += nested
    base = arguments = ""
    while found := _LENGTH.match(name, at):
        start = found.end()
        at = start + int(found[0])
        part = name[start:at]
        arguments = ""
        if not _HIDDEN.match(part):
            base = part
        if name[at : at + 1] == "I":
            arguments, at = _arguments(name, at + 1)
        if not nested or at < 0:
            break
    return base + arguments if base else name


def of_demangled(name: str) -> str:
    """`soft<4>` of `void ns::soft<(int)4>(float const*, long)`."""
    text = _CAST.sub(_keep_bool_cast, name.replace(_ANONYMOUS, "")).removeprefix("void ").strip()
    text = re.sub(r"\bbool:0\b", "false", re.sub(r"\bbool:1\b", "true", text))
    depth, start, end = 0, 0, len(text)
    for at, character in enumerate(text):
        if character == "<":
            depth += 1
        elif character == ">":
            depth -= 1
        elif depth == 0 and character == "(":
            end = at
            break
        elif depth == 0 and text.startswith("::", at):
            start = at + 2
    return text[start:end]


def base(name: str) -> str:
    """A name without its template arguments."""
    return name.partition("<")[0]


def _keep_bool_cast(cast: re.Match[str]) -> str:
    return "bool:" if cast[0] == "(bool)" else ""


def _arguments(name: str, at: int) -> tuple[str, int]:
    """`<4, true>` and where the name goes on; an empty text and -1 where an argument is not a simple one."""
    arguments: list[str] = []
    while name[at : at + 1] != "E":
        literal = _LITERAL.match(name, at)
        if literal is not None:
            kind, minus, digits = literal.groups()
            arguments.append(
                ("false", "true")[digits == "1"] if kind == "b" else f"{'-' * bool(minus)}{digits}"
            )
            at = literal.end()
        elif name[at : at + 1] in _TYPES:
            arguments.append(_TYPES[name[at]])
            at += 1
        else:
            return "", -1
    return f"<{', '.join(arguments)}>", at + 1
