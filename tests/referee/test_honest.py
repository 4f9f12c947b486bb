"""The honest members are many mechanisms, each in its own words; the page says what each is taken for."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.referee.corpus import CORPUS, members

PAGE = (Path(__file__).parents[2] / "docs" / "reference" / "corpus.md").read_text()
SECTION = PAGE.split("## Honest candidates that are easily misjudged")[1].split("\n## ")[0]
LEAST = 40
"""Easily misjudged members, of whose mechanisms no two are alike."""


def text_of(name: str) -> str:
    """A member's docstring in one line."""
    found = ast.get_docstring(ast.parse((CORPUS / "honest" / f"{name}.py").read_text()))
    assert found is not None, name
    return " ".join(found.split())


HONEST = {path.stem: text_of(path.stem) for path in sorted((CORPUS / "honest").glob("*.py"))}


def rows() -> list[list[str]]:
    """The members that each row of the page's table names."""
    lines = [line for line in SECTION.splitlines() if line.startswith("|")][2:]
    return [re.findall(r"`honest/(\w+)`", line) for line in lines]


@pytest.mark.parametrize("name", HONEST)
def test_says_its_mechanism_and_why_it_is_misjudged(name: str) -> None:
    assert re.match(r"Mechanism: .+ Surface: .+", HONEST[name])


def test_no_two_mechanisms_are_alike() -> None:
    words = Counter(text.split("Surface: ")[0].strip().lower() for text in HONEST.values())
    assert [text for text, count in words.items() if count > 1] == []


def test_the_page_names_enough_of_them_and_each_once(record_property: Callable[[str, object], None]) -> None:
    named = Counter(name for row in rows() for name in row)
    assert [name for name, count in named.items() if count > 1] == []
    assert set(named) <= set(HONEST)
    mechanisms = {HONEST[name].split("Surface: ")[0] for name in named}
    record_property("honest members", len(HONEST))
    record_property("mechanisms that are easily misjudged", len(mechanisms))
    assert len(mechanisms) >= LEAST


def test_what_a_processor_can_show_is_judged_on_one() -> None:
    here = {member.name for member in members("cpu") if member.kind == "honest"}
    there = {member.name for member in members("cuda") if member.kind == "honest"}
    interpreted = {name for name in here if name.startswith("triton_")}  # not all: an interpreter has limits
    elsewhere = ("cuda_", "gpu_", "triton_")
    assert {name for name in HONEST if not name.startswith(elsewhere)} == here - interpreted
    assert interpreted or find_spec("triton") is None
    assert {name for name in HONEST if not name.startswith("cpp_")} == there
