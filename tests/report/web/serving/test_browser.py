"""Served pages in a real browser: what is stored meanwhile appears, and no hostile text runs."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from kernelproof.db.leases import new_owner
from kernelproof.db.store import Store, open_store
from kernelproof.types import Status
from kernelproof.types.run import BatchProgress, ModelProgress
from tests.db import samples
from tests.report import hostile_attempts
from tests.report.web import axe, browser
from tests.report.web.browser import Tab
from tests.report.web.serving.server import Server, serving

pytestmark = [
    pytest.mark.ci,
    pytest.mark.skipif(browser.PROGRAM is None, reason="no Chromium here (Debian: apt install chromium)"),
]
TEXT = "document.querySelector('main').textContent"


@pytest.fixture
def store(own_workspace: Path) -> Iterator[Store]:
    with open_store(own_workspace / "db" / "attempts.sqlite", create=False) as opened:
        yield opened


@pytest.fixture
def live(own_workspace: Path) -> Iterator[Server]:
    """A server whose database a test writes to."""
    with serving(own_workspace) as server:
        yield server


def test_what_is_stored_appears_and_what_a_reader_did_stays(tab: Tab, live: Server, store: Store) -> None:
    tab.open(live.address)
    tab.ask("window.loaded = 'once'")
    tab.ask("document.querySelectorAll('#problems-1 thead th button')[2].click()")
    tab.ask(
        "(q => { q.value = 'level1'; q.dispatchEvent(new Event('input', {bubbles: true})); q.focus() })"
        "(document.querySelector('.filter input'))"
    )
    samples.judge(store, samples.problem(9), samples.settings("vendor:new"), speedup=3.0)
    tab.until(f"/vendor:new\\s+1\\/1/.test({TEXT})")
    assert tab.ask("window.loaded") == "once", "nothing was reloaded"
    assert tab.ask("document.querySelector('.filter input').value") == "level1"
    assert tab.ask("document.activeElement === document.querySelector('.filter input')") is True
    heads = "document.querySelectorAll('#problems-1 thead th')"
    assert tab.ask(f"{heads}[2].getAttribute('aria-sort')") == "descending"
    names = "[...document.querySelectorAll('#problems-1 tbody th')].map(e => e.textContent.split(' ')[0])"
    assert tab.ask(names)[0] == "level1/9", "the new one is sorted in"
    assert tab.ask("document.querySelector('.filter output').value") == "3 of 3 problems"
    assert tab.complaints == []


def test_an_attempt_in_progress_ends_before_the_readers_eyes(tab: Tab, live: Server, store: Store) -> None:
    tab.open(f"{live.address}attempts/5")
    assert "in progress" in tab.ask(TEXT)
    tab.ask("document.querySelector('main details').open = true")
    store.record_response(5, samples.response("a late answer"))
    store.record_verification(5, samples.verification(samples.problem(3), speedup=2.5))
    store.finish_attempt(5, Status.CORRECT)
    tab.until(f"{TEXT}.includes('2.50× [') && {TEXT}.includes('a late answer')")
    assert tab.ask("document.querySelector('main details').open") is True
    assert tab.complaints == []


def test_batches_are_followed(tab: Tab, live: Server, store: Store) -> None:
    tab.open(live.address)
    assert tab.ask("document.querySelectorAll('#progress progress').length") == 0
    batch = store.batches.begin(new_owner(), "night", [1], {})
    for over in (3, 7):
        store.batches.report(batch, progress(over))
        tab.until(f"document.querySelector('#progress progress')?.value === {over}")
        assert f"{over}/10" in tab.ask("document.querySelector('#progress').textContent")
    store.batches.report(batch, progress(10), ended="done")
    tab.until("document.querySelectorAll('#progress progress').length === 0")
    tab.until("document.querySelector('#progress').textContent.includes('10 of 10 samples')")
    assert tab.complaints == []


def progress(over: int) -> dict[str, Any]:
    model = ModelProgress(model="vendor:good", samples=10, over=over, statuses={Status.CORRECT: over})
    return BatchProgress(elapsed_s=1.0, models=(model,)).as_json()


def test_a_server_that_is_gone_is_said(tab: Tab, live: Server) -> None:
    tab.open(live.address)
    live.stop()
    tab.until("document.querySelector('#live [role=status]').textContent.includes('does not answer')")


@pytest.fixture(scope="module")
def hostile(hostile_store: Store, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    workspace = tmp_path_factory.mktemp("hostile-served")
    (workspace / "db").mkdir()
    with (
        closing(sqlite3.connect(hostile_store.path)) as stored,
        closing(sqlite3.connect(workspace / "db" / "attempts.sqlite")) as copy,
    ):
        stored.backup(copy)
    with serving(workspace) as server:
        yield server


def assert_harmless(tab: Tab, server: Server, heading: str) -> None:
    tab.ask("document.querySelectorAll('details').forEach(d => d.open = true)")
    assert tab.ask("document.title").startswith(heading)
    assert tab.ask("document.querySelectorAll('script').length") == 1
    foreign = "iframe, img, base, object, form:not(.filter, .asked), a[href^=javascript]"
    assert tab.ask(f"document.querySelectorAll({foreign!r}).length") == 0
    assert tab.ask(
        "[...document.querySelectorAll('main, footer')].every(e => e.parentNode === document.body)"
    )
    assert all(url.startswith((server.address, "data:")) for url in tab.requests), tab.requests
    assert tab.complaints == []


@pytest.mark.parametrize("path", ["", "attempts", "?model=%3Cscript%3Ealert(1)%3C/script%3E"])
def test_hostile_texts_do_no_harm_in_lists(tab: Tab, hostile: Server, path: str) -> None:
    tab.open(f"{hostile.address}{path}", width=360)
    assert_harmless(tab, hostile, "Attempts" if path == "attempts" else "Kernels that were verified")
    assert tab.ask("document.documentElement.scrollWidth") <= 360


def test_hostile_texts_do_no_harm_on_their_own_pages(tab: Tab, hostile: Server, hostile_store: Store) -> None:
    for number in range(1, (hostile_store.latest_attempt_id() or 0) + 1, 6):
        tab.open(f"{hostile.address}attempts/{number}")
        assert_harmless(tab, hostile, f"Attempt #{number}")


def test_hostile_texts_do_no_harm_when_they_are_put_into_an_open_page(
    tab: Tab, live: Server, store: Store
) -> None:
    """As text that is parsed anew: what one parser calls text another may call an element."""
    tab.open(live.address)
    tab.ask("window.loaded = 'once'")
    hostile_attempts.fill(store)
    last = store.latest_attempt_id()
    tab.until(f"{TEXT}.includes('#{last}')")
    assert tab.ask("window.loaded") == "once"
    tab.until("document.title === 'Kernels that were verified'")  # of several settings
    assert_harmless(tab, live, "Kernels that were verified")


@pytest.mark.parametrize("path", ["", "attempts", "attempts/1"])
def test_axe_finds_no_barrier(tab: Tab, server: Server, path: str) -> None:
    tab.open(f"{server.address}{path}", 360)
    tab.ask("document.querySelectorAll('details').forEach(d => d.open = true)")
    assert axe.barriers(tab) == []
    assert tab.ask("document.documentElement.scrollWidth") <= 360
    assert tab.complaints == []
