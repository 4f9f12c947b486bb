"""A verification that is ended from outside: its caller no longer wants the verdict."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from kernelproof.errors import KernelproofError


class Stopped(KernelproofError):
    """The caller has asked for the end: there is no verdict, and nothing is known of the candidate."""


class Stop:
    """Ends one verification. Thread-safe. Asked once, it stays so."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._requested = self._begun = False
        self._acts: list[Callable[[], None]] = []

    @property
    def requested(self) -> bool:
        """Whether `ask` was called."""
        return self._requested

    def begin(self) -> None:
        """A device works on it from now on. Raises Stopped when it was asked before."""
        with self._lock:
            self.check()
            self._begun = True

    def ask(self, *, unless_begun: bool = False) -> None:
        """Returns at once. The work of ending, such as killing compilers, is done in a thread.

        `unless_begun`: does nothing after `begin`.
        """
        with self._lock:
            if self._requested or (unless_begun and self._begun):
                return
            self._requested = True
            acts = list(self._acts)
        for act in acts:
            threading.Thread(target=act, name="stopping", daemon=True).start()

    def check(self) -> None:
        """Raises Stopped when `ask` was called."""
        if self._requested:
            raise Stopped("stopped before there was a verdict")

    @contextmanager
    def by(self, act: Callable[[], None]) -> Iterator[None]:
        """`act` is called, once and in a thread of its own, if `ask` is called within the block.

        Raises Stopped when it was called before.
        """
        with self._lock:
            self.check()
            self._acts.append(act)
        try:
            yield
        finally:
            with self._lock:
                self._acts.remove(act)


@contextmanager
def ended_later(stop: Stop, seconds: float, end: Callable[[], None]) -> Iterator[None]:
    """`end` is called where the block still runs `seconds` after `stop` was asked, and never after it.

    Raises Stopped when `stop` was asked before.
    """
    lock, over = threading.Lock(), threading.Event()

    def act() -> None:
        over.wait(seconds)
        with lock:
            if not over.is_set():
                end()

    with stop.by(act):
        try:
            yield
        finally:
            with lock:
                over.set()
