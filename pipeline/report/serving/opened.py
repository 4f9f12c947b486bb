"""The database, kept open, and opened again after it was away."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import TypeVar

from kernelproof.db.newest import State
from kernelproof.db.store import Store, open_store
from kernelproof.errors import KernelproofError, StoreError, UsageError
from kernelproof.workspace import DatabasePlace

T = TypeVar("T")
FRESH_S = 0.2
"""A state is taken for the present one so long, or as long as it took to look, if that is more."""


class Opened:
    """The store of a database that other processes write to. Threads may share it."""

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
    def place(self) -> DatabasePlace:
        """The database's file, or the database on a server."""
        return self._place

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

    def state_or_away(self) -> State:
        """The same; a state of its own while the database cannot be used."""
        try:
            return self.state()
        except KernelproofError:
            return State("away", "away")

    def close(self) -> None:
        """Closes the database."""
        if self._store is not None:
            self._leave(self._store)

    def _leave(self, store: Store) -> None:
        with self._turn:
            if self._store is store:
                store.close()
                self._store = self._state = None
