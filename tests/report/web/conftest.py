"""A report on made-up attempts, once for all tests: two models, and one of hostile texts."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from kernelproof.db.scores.filters import Filters
from kernelproof.db.store import Store
from kernelproof.report.web.facts import gather
from kernelproof.report.web.pages import board, in_file
from kernelproof.runs.bundles.writer import bundle_bytes
from kernelproof.types import Status
from tests.db import samples
from tests.hostile_texts import TEXTS
from tests.report.web import browser
from tests.report.web.browser import Tab

SPEEDUPS = {1: 2.0, 2: 0.5, 3: 10.5, 10: 1.25}
"""Problem to the speedup of the better model."""


@pytest.fixture(scope="session")
def chromium(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Tab]:
    with browser.tab(tmp_path_factory.mktemp("profile")) as tab:
        yield tab


@pytest.fixture
def tab(chromium: Tab) -> Iterator[Tab]:
    """A tab of which nothing was heard yet; it is left empty."""
    yield chromium
    chromium.open("about:blank")
    chromium.complaints.clear()
    chromium.requests.clear()


@pytest.fixture(scope="session")
def filled(empty_database: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    with samples.new_store(tmp_path_factory.mktemp("reported"), empty_database) as store:
        for number, speedup in SPEEDUPS.items():
            samples.judge(store, samples.problem(number), samples.settings("vendor:good"), speedup=speedup)
            samples.judge(store, samples.problem(number), samples.settings("vendor:poor"), speedup=0.4)
        failed = samples.settings("vendor:poor")
        samples.judge(store, samples.problem(4), failed, Status.WRONG_OUTPUT)
        _repaired(store)
        yield store


def _repaired(store: Store) -> None:
    """A second turn, whose program has the first one as its parent; it has a roofline."""
    problem, run = samples.problem(5), samples.settings("vendor:good")
    first, _ = samples.judge(store, problem, run, Status.WRONG_OUTPUT)
    second = store.begin_attempt(
        store.begin_run(run), samples.key(problem, turn=2), samples.prompt(), parent_id=first
    )
    store.record_response(second, samples.response())
    store.record_extraction(second, samples.extraction("class ModelNew: mended = True"))
    judged = samples.verification(problem, speedup=1.5)
    measured = samples.measurement(1.5).model_copy(update={"roofline": samples.roofline()})
    store.record_verification(second, judged.model_copy(update={"measurement": measured}))
    store.finish_attempt(second, Status.CORRECT)


@pytest.fixture(scope="session")
def good(filled: Store) -> str:
    """The page of it."""
    return in_file(board(filled, Filters(), report=gather(filled, Filters(), 20, bundle_bytes)))


@pytest.fixture(scope="session")
def hostile(hostile_store: Store) -> str:
    """A page whose every text is hostile."""
    return in_file(
        board(hostile_store, Filters(), report=gather(hostile_store, Filters(), len(TEXTS), bundle_bytes))
    )
