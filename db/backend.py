"""What differs between databases: protocol `DatabaseBackend`, which `sqlite` and `postgresql` implement."""

from __future__ import annotations

import logging
import threading
import time
from contextlib import AbstractContextManager
from enum import Enum
from typing import Protocol

from sqlalchemy import Connection, Engine

from kernelproof.workspace import DatabasePlace

ACCESS = "kernelproof_access"
"""The execution option of a connection that says what its transactions are for."""
BUSY_MS = 3_000
"""How long the database itself waits for a lock before it says busy."""
PATIENCE_S = 120.0
"""How long a transaction is tried again before the user is told that the database cannot be used."""
BUSY = "is locked by another process"


WARN_S = 3.0
"""After so long a wait it is said what is waited for."""
_LOG = logging.getLogger("kernelproof.db")
_last_warned: dict[str, float] = {}


def warn_waiting(place: DatabasePlace, obstacle: str) -> None:
    """Says that a database is waited for, once in PATIENCE_S. `obstacle`: what is in the way, as BUSY is."""
    now = time.monotonic()
    if now - _last_warned.get(str(place), -PATIENCE_S) >= PATIENCE_S:
        _last_warned[str(place)] = now
        _LOG.warning("kernelproof: database %s %s; waiting for it, %d s at most", place, obstacle, PATIENCE_S)


class Access(Enum):
    READ = "read"
    WRITE = "write"
    CHANGE = "change"
    """Changes rows that its own locks or keys protect. On a server several of these run at once."""
    WRITE_IF_FREE = "write if free"
    """As WRITE, where nobody else writes now; else it fails at once."""

    @staticmethod
    def of(connection: Connection) -> Access:
        found: Access = connection.get_execution_options().get(ACCESS, Access.READ)
        return found


class Listener(Protocol):
    """Sleeps until a notification comes. One that came between two waits ends the next wait at once."""

    def wait(self, seconds: float, stop: threading.Event) -> None:
        """Returns after a notification, after so many seconds, or soon after `stop` is set."""

    def close(self) -> None:
        """Ends its connection."""


class NotFree(Exception):
    """Another process writes now: no transaction of WRITE_IF_FREE began."""


class DatabaseBackend(Protocol):
    """Where a database lives. Its engine begins transactions as `Access` says."""

    place: DatabasePlace
    engine: Engine
    fixed: bool
    """Nothing can be written: the file is read as it is."""

    def explained(self) -> AbstractContextManager[None]:
        """Turns errors of the database that a user can mend into StoreError; lets others pass."""

    def obstacle(self, error: BaseException) -> str | None:
        """What is in the way, in words such as BUSY, where trying again may help and does no harm."""

    def version(self, connection: Connection) -> str | None:
        """The migration that the database is at; None for an empty one.

        Raises StoreError for another program's database.
        """

    def before_migrating(self) -> None:
        """Does the work that is impossible within a transaction."""
        return

    def mark(self, connection: Connection) -> None:
        """Marks an empty database as ours, within the transaction that fills it."""

    def opened(self) -> None:
        """Called when the database is in the newest schema."""

    def take_turn(self, connection: Connection) -> None:
        """Within a transaction of CHANGE: from now on it is one of WRITE, and nobody else writes."""
        return

    def notify(self, channel: str) -> None:
        """Wakes all listeners of a channel, in this process and in others. Never fails, never waits."""
        return

    def listener(self, channel: str) -> Listener:
        """A listener of a channel, used by one thread."""

    def require(self) -> None:
        """Raises StoreError where what was opened is no longer there."""
        return
