"""The pages that are served. Each is kept as long as nothing is new, and made once for all who ask."""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any
from urllib.parse import urlencode

from markupsafe import Markup

from kernelproof.db.newest import MOST_BATCHES, State
from kernelproof.db.scores.filters import Filters
from kernelproof.db.store import Store
from kernelproof.errors import UsageError
from kernelproof.report.html.attempts import attempt_page
from kernelproof.report.html.gathering import gather
from kernelproof.report.html.page import Page, board_facts, fragment, rendered
from kernelproof.report.serving.asked import fields, query_of
from kernelproof.report.serving.opened import Opened
from kernelproof.report.serving.progress import shown_batches

KEPT = 64
"""Pages that are kept: of different filters, and of different attempts."""
PATIENCE = 3.0
"""A page is kept for so many times the seconds that it took, even where something is new."""
NEWEST = 15
"""Attempts that the board lists."""
LISTED = 100
"""Attempts on one page of the list."""


@dataclass(frozen=True)
class _Kept:
    results: str
    """The state that it was made in."""
    made: float
    took_s: float
    heading: str
    contents: tuple[tuple[str, str], ...]
    body: Markup

    def does(self, state: State) -> bool:
        """Whether it may be shown in this state of the database."""
        return self.results == state.results or time.monotonic() - self.made < PATIENCE * self.took_s


Made = tuple[str, tuple[tuple[str, str], ...], Markup]
"""A heading, links, and the body of a page."""


class Pages:
    """The pages of a database."""

    def __init__(self, opened: Opened, base: str = "") -> None:
        """`base`: the address below which they are, without a slash at its end."""
        self._opened = opened
        self._base = base
        self._kept: OrderedDict[object, _Kept] = OrderedDict()
        self._making = threading.Lock()

    def board(self, filters: Filters) -> Page:
        """The leaderboard as the report shows it. Raises StoreError when the database cannot be read."""
        return self._page("/", filters, ("board", filters), lambda store: _board(store, filters, self._base))

    def attempts(self, filters: Filters, before: int | None) -> Page:
        """A page of the list of attempts. Raises StoreError when the database cannot be read."""
        key = ("attempts", filters, before)
        return self._page(
            "/attempts", filters, key, lambda store: _attempts(store, filters, before, self._base)
        )

    def attempt(self, attempt_id: int) -> Page:
        """The page of an attempt.

        Raises UsageError where there is no such attempt, StoreError when the database cannot be read.
        """
        return self._page("", None, attempt_id, lambda store: _attempt(store, attempt_id, self._base))

    def progress(self) -> Page:
        """How far batches are: the part of a page that a browser replaces."""
        state = self._opened.state()
        facts: dict[str, object] = {"state": state, "progress": self._progress()}
        return rendered("progress_page.html", facts, scripts=())

    def _page(self, action: str, filters: Filters | None, key: object, make: Callable[[Store], Made]) -> Page:
        state = self._opened.state()
        kept = self._found(key, state)
        if kept is None:
            with self._making:
                kept = self._found(key, state) or self._made(key, make)
        query = query_of(filters) if filters else []
        facts: dict[str, Any] = {
            "heading": kept.heading,
            "contents": kept.contents,
            "body": kept.body,
            "state": State(kept.results, state.batches),
            "made": f"{datetime.now(UTC):%Y-%m-%d %H:%M:%S} UTC",
            "progress": self._progress() if filters else None,
            "filters": fields(filters) if filters else (),
            "query": query,
            "action": f"{self._base}{action}",
            "base": self._base,
        }
        return rendered("live.html", facts, scripts=("live.js", "page.js"), served=True)

    def _found(self, key: object, state: State) -> _Kept | None:
        kept = self._kept.get(key)
        return kept if kept is not None and kept.does(state) else None

    def _made(self, key: object, make: Callable[[Store], Made]) -> _Kept:
        began = time.monotonic()
        # Before the question: what is stored meanwhile makes another state.
        state = self._opened.state()
        made = self._opened.ask(make)
        now = time.monotonic()
        kept = self._kept[key] = _Kept(state.results, now, now - began, *made)
        self._kept.move_to_end(key)
        while len(self._kept) > KEPT:
            self._kept.popitem(last=False)
        return kept

    def _progress(self) -> Markup:
        batches = self._opened.ask(lambda store: store.batches.newest(most=MOST_BATCHES))
        return fragment("progress.html", {"batches": shown_batches(batches)})


def _board(store: Store, filters: Filters, base: str) -> Made:
    newest = store.newest.attempts(filters, NEWEST)
    query = urlencode(query_of(filters))
    more = f"{base}/attempts?{query}" if query else f"{base}/attempts"
    facts: dict[str, Any] = {"newest": newest, "more": more, "base": base}
    contents = [("The newest attempts", "#newest-title")] if newest else []
    try:
        report = gather(store, filters, 0)
    except UsageError as error:
        facts |= {"report": None, "why": [line.strip().removeprefix("--") for line in str(error).split("\n")]}
    else:
        facts |= board_facts(report, lambda number: f"{base}/attempts/{number}")
        boards = [(board.title, f"#board-{number}") for number, board in enumerate(report.boards, 1)]
        contents = [*boards, *contents]
    return "Kernels that were verified", tuple(contents), fragment("board_body.html", facts)


def _attempts(store: Store, filters: Filters, before: int | None, base: str) -> Made:
    lines = store.newest.attempts(filters, LISTED, before)
    older = ""
    if len(lines) == LISTED:
        older = f"{base}/attempts?{urlencode([*query_of(filters), ('before', str(lines[-1].id))])}"
    body = fragment("attempts_body.html", {"lines": lines, "older": older, "base": base})
    return "Attempts", (("All results", f"{base}/"),), body


def _attempt(store: Store, attempt_id: int, base: str) -> Made:
    found = attempt_page(store, attempt_id)
    problem = found.attempt.problem
    facts: dict[str, object] = {"found": found, "sample": store.newest.sample_of(attempt_id), "base": base}
    links = [("All results", f"{base}/"), ("All attempts", f"{base}/attempts")]
    if found.parent is not None:
        links.append(
            (f"What it was built on: attempt #{found.parent.id}", f"{base}/attempts/{found.parent.id}")
        )
    heading = f"Attempt #{attempt_id}: {problem.id} {problem.name}"
    return heading, tuple(links), fragment("served_attempt.html", facts)
