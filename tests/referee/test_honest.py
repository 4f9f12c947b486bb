"""The honest members are many mechanisms, each in its own words, with what it is taken for."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Callable
from importlib.util import find_spec

import pytest

from tests.referee.corpus import CORPUS, members

LEAST = 40
"""Easily misjudged members, of whose mechanisms no two are alike."""


def text_of(name: str) -> str:
    """A member's docstring in one line."""
    found = ast.get_docstring(ast.parse((CORPUS / "honest" / f"{name}.py").read_text()))
    assert found is not None, name
    return " ".join(found.split())


HONEST = {path.stem: text_of(path.stem) for path in sorted((CORPUS / "honest").glob("*.py"))}


@pytest.mark.parametrize("name", HONEST)
def test_says_its_mechanism_and_why_it_is_misjudged(name: str) -> None:
    assert re.match(r"Mechanism: .+ Surface: .+", HONEST[name])


def test_no_two_mechanisms_are_alike() -> None:
    words = Counter(text.split("Surface: ")[0].strip().lower() for text in HONEST.values())
    assert [text for text, count in words.items() if count > 1] == []


def test_their_mechanisms_are_many(record_property: Callable[[str, object], None]) -> None:
    record_property("honest members", len(HONEST))
    assert len({text.split("Surface: ")[0] for text in HONEST.values()}) >= LEAST


def test_what_a_processor_can_show_is_judged_on_one() -> None:
    here = {member.name for member in members("cpu") if member.kind == "honest"}
    there = {member.name for member in members("cuda") if member.kind == "honest"}
    interpreted = {name for name in here if name.startswith("triton_")}  # not all: an interpreter has limits
    elsewhere = ("cuda_", "gpu_", "triton_")
    assert {name for name in HONEST if not name.startswith(elsewhere)} == here - interpreted
    assert interpreted or find_spec("triton") is None
    assert {name for name in HONEST if not name.startswith("cpp_")} == there
