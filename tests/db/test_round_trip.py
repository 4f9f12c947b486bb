"""All that a record holds comes back equal: odd Unicode, infinities, huge seeds, empty fields."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from enum import Enum
from itertools import count
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pydantic import BaseModel

from kernelproof.db.store import Store, open_store
from kernelproof.hashing import sha256_text
from kernelproof.types import (
    Candidate,
    Extraction,
    Prompt,
    Response,
    Status,
    Usage,
    Verification,
)
from kernelproof.workspace import DatabasePlace
from tests.db import samples

FEW = settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
SAMPLE_NUMBERS = count()
TEXT = st.text(st.characters(exclude_categories=()), max_size=20)  # lone surrogates and NUL included
SHA = st.text("0123456789abcdef", min_size=64, max_size=64)
NUMBER = st.floats(allow_nan=False)
HUGE = st.integers(-(2**70), 2**70)
JSON = st.recursive(
    st.none() | st.booleans() | HUGE | NUMBER | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=5,
)
SIMPLE = {str: TEXT, int: st.integers(0, 2**63 - 1), float: NUMBER, bool: st.booleans(), NoneType: st.none()}
BOUNDED = {**SIMPLE, int: st.integers(1, 100), float: st.floats(0, 1, exclude_min=True, exclude_max=True)}
"""Within the bounds of every field that has some."""
FIELDS: dict[str, st.SearchStrategy[Any]] = {
    **dict.fromkeys(("sha256", "problem_sha256", "candidate_sha256", "template_sha256"), SHA),
    "created": st.just("2026-01-01T00:00:00+00:00"),
    "backend": st.sampled_from(("cuda", "cpp")),
    "seeds": st.dictionaries(TEXT, HUGE, max_size=3),
}
"""Those that do not hold any value of their type, in whichever record."""


def values(kind: Any, simple: Mapping[Any, st.SearchStrategy[Any]] = SIMPLE) -> st.SearchStrategy[Any]:
    """Any value of a field's type."""
    origin, arguments = get_origin(kind), get_args(kind)
    if kind is Any:
        return JSON
    if kind in simple:
        return simple[kind]
    if origin in (Union, UnionType):
        return st.one_of(*(values(each, simple) for each in arguments))
    if origin is Literal:
        return st.sampled_from(arguments)
    if origin is dict:
        return st.dictionaries(*map(values, arguments), max_size=3)
    if origin is tuple and arguments[-1] is Ellipsis:
        return st.lists(values(arguments[0]), max_size=3).map(tuple)
    if origin is tuple:
        return st.tuples(*map(values, arguments))
    if issubclass(kind, Enum):
        return st.sampled_from(kind)
    return RECORDS[kind] if kind in RECORDS else records(kind)


def records(kind: type[BaseModel], **fields: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """Any record of a kind. `fields`: those that do not hold any value of their type."""
    known = {**FIELDS, **fields}
    drawn = {
        name: known[name]
        if name in known
        else values(field.annotation, BOUNDED if field.metadata else SIMPLE)
        for name, field in kind.model_fields.items()
    }
    return st.builds(kind, **drawn)


RECORDS: dict[type[BaseModel], st.SearchStrategy[Any]] = {}
RECORDS |= {
    Candidate: TEXT.map(lambda source: Candidate(source=source, sha256=sha256_text(source))),
    Usage: records(Usage).filter(lambda usage: usage != Usage()),
}


@pytest.fixture(scope="module", params=["sqlite", pytest.param("postgresql", marks=pytest.mark.ci)])
def shared(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    if request.param == "sqlite":
        place: DatabasePlace = tmp_path_factory.mktemp("store") / "attempts.sqlite"
    else:
        postgres = request.getfixturevalue("postgres")
        place = postgres.address(postgres.made())
    with open_store(place) as opened:
        yield opened


@FEW
@given(data=st.data(), status=st.sampled_from(Status))
def test_a_verification_comes_back_equal(shared: Store, data: st.DataObject, status: Status) -> None:
    measured = {} if status in (Status.CORRECT, Status.CHEATING) else {"measurement": st.none()}
    verification = data.draw(records(Verification, status=st.just(status), **measured))
    attempt = samples.begin(shared, samples.problem(), samples.settings(), next(SAMPLE_NUMBERS))
    number = shared.record_verification(attempt, verification)
    stored = shared.load_attempt(attempt)
    assert stored.verifications[-1].verification == verification
    assert stored.verifications[-1].id == number
    assert stored.alterations == ()


@FEW
@given(response=records(Response), prompt=records(Prompt), extraction=records(Extraction))
def test_prompt_response_and_extraction_come_back_equal(
    shared: Store, response: Response, prompt: Prompt, extraction: Extraction
) -> None:
    problem = samples.problem(2)
    shared.add_problem(problem)
    run = shared.begin_run(samples.settings())
    attempt = shared.begin_attempt(run, samples.key(problem, next(SAMPLE_NUMBERS)), prompt)
    shared.record_response(attempt, response)
    shared.record_extraction(attempt, extraction)
    stored = shared.load_attempt(attempt)
    assert (stored.prompt, stored.response, stored.extraction) == (prompt, response, extraction)
    assert stored.problem == problem
    assert stored.alterations == ()


def test_a_text_that_occurs_often_is_stored_once(store: Store, tmp_path: Path) -> None:
    for sample in range(5):
        samples.judge(store, samples.problem(), samples.settings(), sample=sample)
    size = store.path.stat().st_size
    big = samples.problem(3, source="x = 1\n" * 100_000)
    store.add_problem(big)
    for sample in range(5):
        attempt = samples.begin(store, big, samples.settings(), sample)
        store.record_extraction(attempt, samples.extraction(big.source))
    store.close()
    assert store.path.stat().st_size - size < 2 * len(big.source)
