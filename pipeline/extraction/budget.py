"""A bound on parsing: a response of any size and shape costs a known amount of work."""

from __future__ import annotations

import ast

from kernelproof.pysource import parse

MAX_CALLS = 200
MAX_CHARACTERS = 6_000_000


class Budget:
    """Parses Python for one extraction, remembers results, and stops when the allowance is used up.

    `spent` says that something could not be parsed for want of allowance.
    """

    def __init__(self, calls: int = MAX_CALLS, characters: int = MAX_CHARACTERS) -> None:
        self._calls = calls
        self._characters = characters
        self._known: dict[str, ast.Module | SyntaxError] = {}
        self.spent = False

    def parse(self, code: str) -> ast.Module | SyntaxError:
        """As `pysource.parse`; a SyntaxError once the allowance is used up."""
        if code in self._known:
            return self._known[code]
        if self._calls <= 0 or len(code) > self._characters:
            self.spent = True
            return SyntaxError("not parsed: the response is too intricate")
        self._calls -= 1
        self._characters -= len(code)
        self._known[code] = result = parse(code)
        return result

    def tree(self, code: str) -> ast.Module | None:
        """The tree, or None when the code does not parse."""
        result = self.parse(code)
        return result if isinstance(result, ast.Module) else None
