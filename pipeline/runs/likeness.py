"""Which programs are the same but for comments, blanks and layout."""

from __future__ import annotations

import ast
import re
from contextlib import suppress

from kernelproof.hashing import sha256_text
from kernelproof.pysource import parse

_C_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
_BLANKS = re.compile(r"\s+")
_AROUND_SIGNS = re.compile(r" ?([^\w ]) ?")


def likeness(source: str) -> str:
    """A hash of a program without its comments, blanks and docstrings, also inside of its C++ strings.

    Text that is no Python is compared without its blanks.
    """
    tree = parse(source)
    if not isinstance(tree, SyntaxError):
        with suppress(RecursionError):
            return sha256_text(ast.dump(_Normal().visit(tree)))
    return sha256_text(_BLANKS.sub(" ", source).strip())


class _Normal(ast.NodeTransformer):
    """Drops docstrings, and what a C++ compiler skips in strings of several lines."""

    def visit_Expr(self, node: ast.Expr) -> ast.AST | None:
        """None for a string by itself."""
        if isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            return None
        return self.generic_visit(node)

    def visit_Constant(self, node: ast.Constant) -> ast.AST:
        """A string of several lines is taken to be C++."""
        if isinstance(node.value, str) and "\n" in node.value:
            return ast.Constant(_plain(node.value))
        return node


def _plain(text: str) -> str:
    """C++ without comments and blanks. The lines of the preprocessor stay lines."""
    said = ""
    for line in _C_COMMENT.sub(" ", text.replace("\\\n", " ")).splitlines():
        blank = _AROUND_SIGNS.sub(r"\1", _BLANKS.sub(" ", line).strip())
        said += f"\n{blank}\n" if blank.startswith("#") else f"{blank} "
    return "\n".join(_AROUND_SIGNS.sub(r"\1", line).strip() for line in said.split("\n"))
