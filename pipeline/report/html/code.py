"""Programs in colour, and what two of them differ in. The text is a candidate's: only spans come out."""

from __future__ import annotations

from difflib import unified_diff

from markupsafe import Markup

from kernelproof.report.plain import visible
from kernelproof.wording import counted

MOST_CODE = 60_000
"""Characters of one program that are shown."""
MOST_LOG = 20_000
"""Characters of the compilers' words."""
_MOST_DIFFED = 4_000
"""Lines of a program that is compared: comparing takes the square of them."""


def coloured(source: str, language: str = "python") -> Markup:
    """A program, or a diff, as spans whose classes style.css colours."""
    from pygments import highlight
    from pygments.formatters import HtmlFormatter
    from pygments.lexers import DiffLexer, PythonLexer

    lexer = {"python": PythonLexer, "diff": DiffLexer}[language](stripnl=False, ensurenl=False)
    text = highlight(visible(cut(source, MOST_CODE)), lexer, HtmlFormatter(nowrap=True))
    return Markup(text)


def cut(text: str, most: int) -> str:
    """A text, or its beginning and how much is left out."""
    if len(text) <= most:
        return text
    return f"{text[:most]}\n[{counted(len(text) - most, 'character')} left out]"


def difference(before: str, after: str, name: str, own: str) -> str:
    """A unified diff of two programs, with their names; empty where they are equal."""
    old, new = (text.splitlines()[:_MOST_DIFFED] for text in (before, after))
    return "\n".join(unified_diff(old, new, name, own, lineterm=""))
