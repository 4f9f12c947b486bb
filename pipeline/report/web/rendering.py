"""Templates filled with facts. Everything is escaped, and nothing but our own script runs."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape

from kernelproof.report.plain import visible
from kernelproof.version import __version__


@dataclass(frozen=True)
class Page:
    """A page, and the content security policy that stands in it: a server sends that in a header, too."""

    text: str
    policy: str


def rendered(facts: Mapping[str, object], *, scripts: Sequence[str], served: bool) -> Page:
    """The page of base.html, with our style and scripts.

    `served`: it comes from a server of ours, which it may ask for more; else it asks nobody for anything.
    """
    style, script = _file("style.css"), "".join(map(_file, scripts))
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
    """A part of a page, or all of it: a template filled with facts."""
    return Markup(TEMPLATES.get_template(template).render(facts))


@cache
def _file(name: str) -> str:
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


TEMPLATES = Environment(
    loader=PackageLoader("kernelproof.report.web", "templates"),
    autoescape=True,
    undefined=StrictUndefined,
    finalize=_shown,
    trim_blocks=True,
    lstrip_blocks=True,
)
