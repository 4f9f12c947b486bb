"""Names of C++ kernels as a profiler gives them: demangled, a template's with the type that it returns."""

from __future__ import annotations

import re
from typing import NamedTuple

_ANONYMOUS = "(anonymous namespace)"
_WORD = "\0"
"""Stands for `_ANONYMOUS` while brackets are counted: it has some of its own."""


class KernelName(NamedTuple):
    """`std::enable_if<!(false), void>::type internal::gemvx::kernel<int>(int)`, taken apart."""

    plain: str
    """From the name on, no return type and no anonymous namespace: `internal::gemvx::kernel<int>(int)`."""
    path: tuple[str, ...]
    """What a mangled name has in one piece: `("internal", "gemvx", "kernel")`; what follows the last template
    or anonymous namespace before the name itself."""
    whole: bool
    """Whether nothing stands before the path: no such template or namespace."""

    @property
    def base(self) -> str:
        """The last identifier: `kernel`."""
        return self.path[-1] if self.path else ""


def kernel_name(name: str) -> KernelName:
    """The parts of a name; one that is cut short or no C++ name at all gives what there is of it."""
    text = name.replace(_ANONYMOUS, _WORD)
    start, end, outer = _head(text)
    last = [_WORD if part.endswith("<>") else part for part in outer.removesuffix("<>").split("::")]
    after = max((at for at, part in enumerate(last[:-1]) if part == _WORD), default=-1)
    path = tuple(part for part in last[after + 1 :] if re.fullmatch(r"\w+", part))
    plain = text[start:end].replace(f"{_WORD}::", "") + text[end:]
    return KernelName(plain.replace(_WORD, _ANONYMOUS), path, whole=len(path) == len(last))


def _head(text: str) -> tuple[int, int, str]:
    """Where the name begins and its parameters do, and the name with `<>` for each list of template
    arguments."""
    open_brackets: list[str] = []
    start, outer = 0, ""
    for at, sign in enumerate(text):
        if sign == "(" and not open_brackets:
            return start, at, outer
        if sign in "<(":
            open_brackets.append(sign)
        elif sign == ")" and "(" in open_brackets:
            while open_brackets.pop() != "(":
                pass
        elif sign == ">" and open_brackets[-1:] == ["<"]:
            open_brackets.pop()
            outer += "" if open_brackets else "<>"
        elif not open_brackets:
            outer += sign
            if sign == " ":
                start, outer = at + 1, ""
    return start, len(text), outer
