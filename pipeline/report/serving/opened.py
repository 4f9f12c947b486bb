"""The database, kept open, and opened again after it was away."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TypeVar

from kernelproof.db.newest import State
from kernelproof.db.store import Store, open_store
from kernelproof.errors import KernelproofError, StoreError, UsageError
from kernelproof.workspace import DatabasePlace

T = TypeVar("T")


class Opened:
    """The store of a database that other processes write to. Threads may share it."""

    def __init__(self, place: DatabasePlace) -> None:
        """Raises UsageError when there is no database, StoreError when it cannot be used."""
        self._place = place
        self._store: Store | None = open_store(place, only_read=True)
        self._turn = threading.Lock()

    @property
    def place(self) -> DatabasePlace:
        """The database's file, or the database on a server."""
        return self._place

    def ask(self, question: Callable[[Store], T]) -> T:
        """The answer of a question to the store.

        Raises StoreError when the database cannot be used, or is away: the next question opens it again.
        """
        with self._turn:
            if self._store is None:
                try:
                    self._store = open_store(self._place, only_read=True)
                except UsageError as error:
                    raise StoreError(str(error)) from None
            store = self._store
        try:
            store.newest.require()
            return question(store)
        except StoreError:
            self._leave(store)
            raise

    def state(self) -> State:
        """The state that the database is in; one of its own while it cannot be used."""
        try:
            return self.ask(lambda store: store.newest.state())
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
                self._store = None
