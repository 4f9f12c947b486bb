"""The corpus's table is one, whichever processes judged the members."""

from __future__ import annotations

from collections import Counter
from types import SimpleNamespace
from typing import Any

from tests.referee.corpus import Confusion
from tests.referee.table import Table


def worker(*statuses: str, miss: str | None = None) -> Any:
    """A worker of pytest-xdist that has judged cheats, and is done."""
    table = Table()
    table.confusion.table.update(Counter(("cheats", status) for status in statuses))
    if miss is not None:
        table.confusion.accepted.append(miss)
        table.confusion.misses.append((miss, "correct instead of cheating"))
    config = SimpleNamespace(workeroutput={})
    table.pytest_sessionfinish(SimpleNamespace(config=config))  # type: ignore[arg-type]
    return config


def test_what_workers_judged_is_added_up() -> None:
    table = Table()
    table.pytest_testnodedown(worker("cheating", "wrong_output"))
    table.pytest_testnodedown(worker("cheating", "correct", miss="cheats/new"))
    assert table.confusion == Confusion(
        table=Counter({("cheats", "cheating"): 2, ("cheats", "wrong_output"): 1, ("cheats", "correct"): 1}),
        accepted=["cheats/new"],
        refused=[],
        misses=[("cheats/new", "correct instead of cheating")],
    )
    assert "accepted of 4 cheats, wrong and faulty: 1" in table.confusion.lines()


def test_a_worker_that_crashed_adds_nothing() -> None:
    table = Table()
    table.pytest_testnodedown(SimpleNamespace())
    assert table.confusion == Confusion()


def test_one_process_alone_hands_nothing_over() -> None:
    table = Table()
    table.pytest_sessionfinish(SimpleNamespace(config=SimpleNamespace()))  # type: ignore[arg-type]
    assert table.confusion == Confusion()
