"""The pages of one database that other processes write to, each kept as long as nothing is new."""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TypeVar

from markupsafe import Markup

from kernelproof.db.loading import MOST_BATCHES, State
from kernelproof.db.scores.filters import Filters
from kernelproof.db.store import Store, open_store
from kernelproof.errors import KernelproofError, StoreError, UsageError
from kernelproof.report.web import pages
from kernelproof.report.web.facts import Bundler
from kernelproof.report.web.pages import Content
from kernelproof.report.web.query import fields, query_of
from kernelproof.report.web.rendering import Page, rendered
from kernelproof.workspace import DatabasePlace

T = TypeVar("T")
FRESH_S = 0.2
"""A state is taken for the present one so long, or as long as it took to look, if that is more."""
KEPT = 64
"""Pages that are kept: of different filters, and of different attempts."""
PATIENCE = 3.0
"""A page is kept for so many times the seconds that it took, even where something is new."""


class ReconnectingStore:
    """Reconnects to a database after an outage. Threads may share it."""

    def __init__(self, place: DatabasePlace) -> None:
        """Raises UsageError when there is no database, StoreError when it cannot be used."""
        self._place = place
        self._store: Store | None = open_store(place, only_read=True)
        self._turn = threading.Lock()
        self._asking: set[int] = set()
        """Threads that wait for an answer."""
        self._looking = threading.Lock()
        self._state: State | None = None
        self._looked = 0.0
        """Until then it is the state."""

    @property
    def busy(self) -> bool:
        """Whether a question is being answered."""
        return bool(self._asking)

    def ask(self, question: Callable[[Store], T]) -> T:
        """The answer of a question to the store.

        Raises StoreError when the database cannot be used, or is away: the next question opens it again.
        """
        self._asking.add(threading.get_ident())
        try:
            store = self._there()
            try:
                store.newest.require()
                return question(store)
            except StoreError:
                self._leave(store)
                raise
        finally:
            self._asking.discard(threading.get_ident())

    def _there(self) -> Store:
        with self._turn:
            if self._store is None:
                try:
                    self._store = open_store(self._place, only_read=True)
                except UsageError as error:
                    raise StoreError(str(error)) from None
            return self._store

    def state(self) -> State:
        """The state that the database is in, or was in a moment ago: all who ask then share a look.

        Raises StoreError when the database cannot be used, or is away.
        """
        with self._looking:
            self.ask(lambda store: None)
            if self._state is None or time.monotonic() > self._looked:
                began = time.monotonic()
                self._state = self.ask(lambda store: store.newest.state())
                now = time.monotonic()
                self._looked = now + max(FRESH_S, now - began)
            return self._state

    def close(self) -> None:
        if self._store is not None:
            self._leave(self._store)

    def _leave(self, store: Store) -> None:
        with self._turn:
            if self._store is store:
                store.close()
                self._store = self._state = None


@dataclass(frozen=True)
class _CachedPage:
    results: str
    """The state that it was made in."""
    built: float
    took_s: float
    content: Content

    def does(self, state: State) -> bool:
        return self.results == state.results or time.monotonic() - self.built < PATIENCE * self.took_s


class Site:
    """The pages as they are served: made once for all who ask, and followed by the browser."""

    def __init__(self, database: ReconnectingStore, base: str = "", bundler: Bundler | None = None) -> None:
        """`base`: the address below which they are, without a slash at its end. `bundler` makes the bundle
        that an attempt's page holds."""
        self.base = base
        self._bundler = bundler
        self._database = database
        self._kept: OrderedDict[object, _CachedPage] = OrderedDict()
        self._making = threading.Lock()

    def board(self, filters: Filters) -> Page:
        """The leaderboard. Raises StoreError when the database cannot be read, as all pages do."""
        return self._page("/", filters, lambda store: pages.board(store, filters, base=self.base))

    def attempts(self, filters: Filters, before: int | None) -> Page:
        """A page of the list of attempts: those from `before` on, the newest first."""
        return self._page(
            "/attempts", (filters, before), lambda store: pages.attempts(store, filters, before, self.base)
        )

    def attempt(self, attempt_id: int) -> Page:
        """The page of an attempt. Raises UsageError where there is no such attempt."""
        return self._page(
            "", attempt_id, lambda store: pages.attempt(store, attempt_id, self.base, self._bundler)
        )

    def state(self) -> State:
        """The state that the database is in; one of its own while it cannot be used."""
        try:
            return self._database.state()
        except KernelproofError:
            return State("away", "away")

    def progress(self) -> Page:
        """How far batches are: the part of a page that a browser replaces."""
        whole = Markup('<!doctype html><title>Batches</title><main data-batches="{}">{}</main>')
        return Page(whole.format(self._database.state().batches, self._progress()), "default-src 'none'")

    def _page(self, action: str, page_id: object, make: Callable[[Store], Content]) -> Page:
        key, state = (action, page_id), self._database.state()
        kept = self._fresh(key, state)
        if kept is None:
            with self._making:
                kept = self._fresh(key, state) or self._build(key, make)
        filters = kept.content.filters
        live = {
            "base": self.base,
            "state": State(kept.results, state.batches),
            "made": f"{datetime.now(UTC):%Y-%m-%d %H:%M:%S} UTC",
            "progress": self._progress() if filters else None,
            "fields": fields(filters) if filters else (),
            "action": f"{self.base}{action}",
        }
        facts = {"content": kept.content, "live": live, "query": query_of(filters) if filters else []}
        return rendered(facts, scripts=("live.js", "page.js"), served=True)

    def _fresh(self, key: object, state: State) -> _CachedPage | None:
        kept = self._kept.get(key)
        return kept if kept is not None and kept.does(state) else None

    def _build(self, key: object, make: Callable[[Store], Content]) -> _CachedPage:
        began = time.monotonic()
        # Before the question: what is stored meanwhile makes another state.
        state = self._database.state()
        content = self._database.ask(make)
        now = time.monotonic()
        kept = self._kept[key] = _CachedPage(state.results, now, now - began, content)
        self._kept.move_to_end(key)
        while len(self._kept) > KEPT:
            self._kept.popitem(last=False)
        return kept

    def _progress(self) -> Markup:
        return pages.progress_part(self._database.ask(lambda store: store.batches.newest(most=MOST_BATCHES)))
