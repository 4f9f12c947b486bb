"""Templates filled with facts, and programs in colour: all escaped, and nothing but our own script runs."""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import unified_diff
from functools import cache
from importlib.resources import files
from itertools import groupby
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape

from kernelproof.report.plain import visible
from kernelproof.version import __version__
from kernelproof.wording import counted

UNFRAMED = "frame-ancestors 'none'"


@dataclass(frozen=True)
class Page:
    """A page, and the content security policy that stands in it: a server sends that in a header, too."""

    text: str
    policy: str

    @property
    def header_policy(self) -> str:
        """The policy of a server's header, which also keeps the page out of frames: in a page that does not
        count."""
        return f"{self.policy}; {UNFRAMED}"


def rendered(facts: Mapping[str, object], *, scripts: Sequence[str], served: bool) -> Page:
    """The page of base.html, with our style and scripts.

    `served`: it comes from a server of ours, which it may ask for more; else it asks nobody for anything.
    """
    style, script = file("style.css") + file("chart.css"), "".join(map(file, scripts))
    allowed = (
        "default-src 'none'",
        f"style-src '{_hash(style)}'",
        f"script-src '{_hash(script)}'" if scripts else "script-src 'none'",
        "img-src data:",
        *(["connect-src 'self'"] if served else []),
        "base-uri 'none'",
        "form-action 'self'" if served else "form-action 'none'",
    )
    policy = "; ".join(allowed)
    ours = {"style": Markup(style), "script": Markup(script), "policy": policy, "version": __version__}
    return Page(fragment("base.html", {**ours, **facts}), policy)


def fragment(template: str, facts: Mapping[str, object]) -> Markup:
    return Markup(TEMPLATES.get_template(template).render(facts))


@cache
def file(name: str) -> str:
    return (files("kernelproof.report.web") / "templates" / name).read_text(encoding="utf-8")


def _hash(text: str) -> str:
    """As a content security policy names a text that it allows."""
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"


def _shown(value: object) -> object:
    """Every text that a template prints, unless it is markup of ours."""
    return visible(value) if isinstance(value, str) and not isinstance(value, Markup) else value


def breakable(text: str) -> Markup:
    """A name that a narrow column breaks after its underscores."""
    return escape(visible(text)).replace("_", Markup("_<wbr>"))


def with_code(text: str) -> Markup:
    """A sentence whose words in backquotes are code."""
    return Markup(re.sub("`([^`]+)`", r"<code>\1</code>", str(escape(visible(text)))))


TEMPLATES = Environment(
    loader=PackageLoader("kernelproof.report.web", "templates"),
    autoescape=True,
    undefined=StrictUndefined,
    finalize=_shown,
    trim_blocks=True,
    lstrip_blocks=True,
)
TEMPLATES.filters["with_code"] = with_code


MOST_CODE = 60_000
MOST_LOG = 20_000
_EXACT = {"stripnl": False, "ensurenl": False}
_CPP = re.compile(r"^\s*#include\b|__global__|\btorch::Tensor\b", re.MULTILINE)
Token = tuple[Any, str]
"""Its kind and its text, as Pygments has them."""
_MOST_DIFFED = 4_000
"""Lines of a program that is compared: comparing takes the square of them."""


def coloured(source: str, language: str = "python") -> Markup:
    """A program, or a diff, as spans whose classes style.css colours; other words have none."""
    from pygments.lexers import DiffLexer, PythonLexer

    lexer = {"python": PythonLexer, "diff": DiffLexer}[language](**_EXACT)
    tokens = _with_kernels(lexer.get_tokens(visible(cut(source, MOST_CODE))))
    named = _names()
    written = []
    for name, run in groupby(tokens, lambda token: next((n for kind, n in named if token[0] in kind), "")):
        text = escape("".join(part for _, part in run))
        written.append(Markup('<span class="{}">{}</span>').format(name, text) if name else text)
    return Markup("").join(written)


@cache
def _names() -> tuple[tuple[Any, str], ...]:
    """Kinds of tokens and their classes in style.css: the first that a token is of is its own."""
    from pygments.token import Comment, Generic, Keyword, Name, Number, Operator, String

    return (
        (Comment.PreprocFile, "s"),
        (Comment.Preproc, "t"),
        (Comment, "c"),
        (Keyword.Type, "t"),
        (Keyword, "k"),
        (Operator.Word, "k"),
        (String, "s"),
        (Number, "m"),
        (Name.Class, "n"),
        (Name.Function, "n"),
        (Generic.Inserted, "gi"),
        (Generic.Deleted, "gd"),
        (Generic.Subheading, "gu"),
        (Generic.Heading, "gu"),
    )


def _with_kernels(tokens: Iterable[Token]) -> Iterator[Token]:
    """The tokens of a Python program; strings that hold C++ or CUDA become the tokens of that."""
    from pygments.lexers import CppLexer
    from pygments.token import String

    for is_string, run in groupby(tokens, lambda token: token[0] in String):
        found = list(run)
        text = "".join(part for _, part in found)
        if is_string and _CPP.search(text):
            yield from CppLexer(**_EXACT).get_tokens(text)
        else:
            yield from found


def cut(text: str, most: int) -> str:
    """A text, or its beginning and how much is left out."""
    if len(text) <= most:
        return text
    return f"{text[:most]}\n[{counted(len(text) - most, 'character')} left out]"


def difference(before: str, after: str, name: str, own: str) -> str:
    """A unified diff of two programs, with their names; empty where they are equal."""
    old, new = (text.splitlines()[:_MOST_DIFFED] for text in (before, after))
    return "\n".join(unified_diff(old, new, name, own, lineterm=""))
