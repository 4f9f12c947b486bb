"""Links between the pages lead somewhere: to a file that is there, and to a heading in it."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

import pytest
from markdown_it import MarkdownIt
from markdown_it.token import Token

from scripts.site_pages import complete

ROOT = Path(__file__).parents[2]
PAGES = [
    *sorted(ROOT.glob("*.md")),
    ROOT / "generated" / "README.md",
    *sorted((ROOT / "docs").rglob("*.md")),
    *sorted((ROOT / "prompts").rglob("*.md")),
]


@cache
def parsed(page: Path) -> list[Token]:
    return MarkdownIt().enable("table").parse(complete(page.read_text()))


def links(page: Path) -> list[str]:
    """The targets of a page's links, but for those into the web."""
    tokens = parsed(page)
    inline = [child for token in tokens for child in token.children or ()]
    found = [str(token.attrs["href"]) for token in inline if token.type == "link_open"]
    return [target for target in found if not re.match(r"\w+:", target)]


@cache
def anchors(page: Path) -> set[str]:
    """The names that a page's headings have on the web: lower case, blanks as hyphens, no punctuation."""
    tokens = parsed(page)
    titles = [tokens[i + 1].content for i, token in enumerate(tokens) if token.type == "heading_open"]
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_resolve(page: Path) -> None:
    broken = []
    for target in links(page):
        name, _, anchor = target.partition("#")
        file = (page.parent / name).resolve() if name else page
        if not file.exists() or (anchor and anchor not in anchors(file)):
            broken.append(target)

    assert broken == []


def test_every_page_is_in_the_index() -> None:
    docs = ROOT / "docs"
    index = docs / "index.md"
    there = {str(page.relative_to(docs)) for page in docs.rglob("*.md")} - {"index.md"}

    assert there == {target for target in links(index) if not target.startswith("../")}
