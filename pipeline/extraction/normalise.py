"""Texts without what transport, typography and layout add: line endings, invisible characters, comments.
`Budget` bounds their parsing: a response of any size and shape costs a known amount of work.
"""

from __future__ import annotations

import ast
import re
from contextlib import suppress

from kernelproof.extraction.reasons import remark
from kernelproof.hashing import sha256_text
from kernelproof.pysource import parse

# ECMA-48 control sequences (CSI) and operating-system commands (OSC); the bounds keep matching linear.
_ANSI = r"\x1b\[[0-?]{0,64}[ -/]{0,8}[@-~]|\x1b\][^\x07\x1b\n]{0,512}(?:\x07|\x1b\\)|\x1b[@-Z\\^_]"

_STEPS = (
    ("surrogates", re.compile("[\ud800-\udfff]"), "\N{REPLACEMENT CHARACTER}"),
    ("ansi", re.compile(_ANSI), ""),
    ("nul", re.compile("\x00"), ""),
    ("line_endings", re.compile(r"\r\n?"), "\n"),
    ("zero_width", re.compile("[\u00ad\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff]"), ""),
    ("spaces", re.compile("[\u00a0\u1680\u2000-\u200a\u202f\u205f\u3000]"), " "),
)


def normalise(text: str) -> tuple[str, tuple[str, ...]]:
    """The text without what no program needs, and a warning that names the kinds found, if any were."""
    kinds: list[str] = []
    for kind, pattern, replacement in _STEPS:
        text, count = pattern.subn(replacement, text)
        if count:
            kinds.append(kind)
    return text, (remark("normalised", ", ".join(kinds)),) if kinds else ()


_CURLY_OR_LITERAL = re.compile(
    r'"""(?:[^\\]|\\.)*?"""|' + r"'''(?:[^\\]|\\.)*?'''|" + r'"(?:[^"\\\n]|\\.)*"|' + r"'(?:[^'\\\n]|\\.)*'|"
    r"#[^\n]*|(?P<double>[\u201c-\u201f])|(?P<single>[\u2018-\u201b])",
    re.DOTALL,
)


def straighten_quotes(code: str) -> str:
    """The code with typographic quotes made straight, those inside string literals and comments kept."""

    def straight(match: re.Match[str]) -> str:
        if match["double"]:
            return '"'
        return "'" if match["single"] else match[0]

    return _CURLY_OR_LITERAL.sub(straight, code)


_C_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
_BLANKS = re.compile(r"\s+")
_AROUND_SIGNS = re.compile(r" ?([^\w ]) ?")


def normalized_hash(source: str) -> str:
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
