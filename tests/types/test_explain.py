"""A value that makes no sense is told in our words: which setting, what it may be, what it is."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, Field, ValidationError

from kernelproof.choices import Baseline
from kernelproof.types import FrozenRecord, RunSettings, VerifySettings
from kernelproof.types.record import BackendName, explain

FOREIGN = (
    "Input should be",
    "validation error",
    "For further information",
    "pydantic",
    "Value error,",
    "type=",
)
"""Phrases of pydantic's."""


class Model(FrozenRecord):
    name: str = Field(min_length=1, max_length=8)
    timeout: float = Field(default=600.0, gt=0, le=3600, multiple_of=0.5)
    backend: BackendName = "cpp"
    extra: str | dict[str, Any] | None = None


class File(FrozenRecord):
    models: tuple[Model, ...] = Field(default=(), max_length=2)
    prices: dict[str, float] = Field(default_factory=dict)
    baselines: list[Baseline] = Field(default_factory=list, min_length=1)


def said(record: type[BaseModel], given: Any, **how: Any) -> str:
    with pytest.raises(ValidationError) as caught:
        record.model_validate(given)
    return explain(caught.value, **how)


ONE: dict[type[BaseModel], list[tuple[Any, str]]] = {
    VerifySettings: [
        ({"trials": 0}, "trials must be 1 or more, not 0"),
        ({"trials": 101}, "trials must be 100 or less, not 101"),
        ({"measure_seconds": 0}, "measure_seconds must be more than 0, not 0"),
        ({"trials": "three"}, "trials must be a whole number, not 'three'"),
        ({"trials": 2.5}, "trials must be a whole number, not 2.5"),
        ({"call_seconds": "x" * 99}, f"call_seconds must be a number, not '{'x' * 60}'..."),
        ({"numerics": "fp16"}, "numerics must be 'fp32' or 'tf32', not 'fp16'"),
        ({"rigor": "fast"}, "rigor must be 'quick', 'standard' or 'publish', not 'fast'"),
        ({"measure": "perhaps"}, "measure must be true or false, not 'perhaps'"),
        ({"size": None}, "size must be text, not nothing"),
        (
            {"backend": "hip"},
            "backend 'hip': there is no such backend; there are: cuda, cpp, triton, tilelang",
        ),
        ({"nonsense": 1}, "there is no nonsense"),
        ({"trials": "\ud800\x1b"}, "trials must be written in whole characters, not '\\ud800\\x1b'"),
    ],
    Model: [
        ({}, "name is missing"),
        ({"name": ""}, "name must be text that is not empty, not ''"),
        ({"name": "x" * 9}, "name must be text of 8 characters or fewer, not 'xxxxxxxxx'"),
        ({"name": "x", "timeout": 0.7}, "timeout must be a multiple of 0.5, not 0.7"),
        ({"name": "x", "extra": 3}, "extra must be text or a table of names and values, not 3"),
        ([1], "it must be a table of names and values, not a list"),
    ],
    File: [
        ({"models": [{"name": "x"}, {"name": 1}]}, "item 2 of models: name must be text, not 1"),
        ({"models": [{"name": "x", "top": 1}]}, "there is no top in item 1 of models"),
        (
            {"baselines": ["compile", "eager"]},
            "item 2 of baselines must be 'compile' or 'max-autotune', not 'eager'",
        ),
        ({"baselines": []}, "baselines must be a list of 1 or more, not an empty list"),
        ({"prices": {"int": "free"}}, "prices.int must be a number, not 'free'"),
        ({"prices": {"a\x1b[2J": "x"}}, "prices.'a\\x1b[2J' must be a number, not 'x'"),
    ],
}


@pytest.mark.parametrize(("record", "wrong", "expected"), [(of, *case) for of in ONE for case in ONE[of]])
def test_one_mistake(record: type[BaseModel], wrong: Any, expected: str) -> None:
    assert said(record, wrong) == expected


def test_names_are_those_of_the_user() -> None:
    assert said(VerifySettings, {"measure_seconds": -1}, names={"measure_seconds": "--seconds"}) == (
        "--seconds must be more than 0, not -1"
    )
    wrong = {"verify": {"trials": 0}, "model": "x"}
    assert (
        said(RunSettings, wrong, names={"verify.trials": "--trials"}) == "--trials must be 1 or more, not 0"
    )
    assert said(RunSettings, wrong) == "verify.trials must be 1 or more, not 0"
    assert said(Model, 3, names={"": "the line"}).startswith("the line must be a table")


def test_a_misspelt_name_gets_the_one_that_was_meant() -> None:
    told = said(VerifySettings, {"rigour": "quick"}, known=VerifySettings.model_fields)
    assert told == "there is no rigour; did you mean rigor?"


def test_several_mistakes_are_one_line() -> None:
    assert said(VerifySettings, {"trials": 0, "threads": -1}) == (
        "trials must be 1 or more, not 0; threads must be 0 or more, not -1"
    )
    wrong = {name: [] for name in VerifySettings.model_fields if name != "baselines"}
    assert said(VerifySettings, wrong).endswith(f"; and {len(wrong) - 5} more")


ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.binary(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=5,
)


@given(st.sampled_from([VerifySettings, RunSettings, Model, File]), st.data())
def test_whatever_is_given_no_phrase_is_pydantics(record: type[BaseModel], data: st.DataObject) -> None:
    names = st.sampled_from([*record.model_fields]) | st.text()
    given = data.draw(st.dictionaries(names, ANYTHING, max_size=4) | ANYTHING)
    try:
        record.model_validate(given)
    except ValidationError as error:
        told = explain(error, known=record.model_fields)
        assert told.isprintable() and len(told) < 2000
        for phrase in FOREIGN:
            assert phrase not in told or phrase in repr(given)
