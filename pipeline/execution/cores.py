"""The cores, shared between builds and measurements: on a CPU a time is worth nothing while compilers run."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from pipeline.execution.referee_process import RefereeLost


class Cores:
    """Many builds, or one measurement that needs the cores for itself. Builds that wait go first.

    So a batch on a CPU compiles as many candidates as it holds, and then measures them one by one.
    """

    def __init__(self, builders: int) -> None:
        self._builders = builders
        self._changed = threading.Condition()
        self._building = self._waiting = 0
        self._measuring = self._closed = False

    @contextmanager
    def building(self) -> Iterator[None]:
        """A place for one build; at most `builders` at a time. Raises RefereeLost when closed meanwhile."""
        with self._changed:
            self._waiting += 1
            try:
                self._wait_until(lambda: self._building < self._builders and not self._measuring)
            finally:
                self._waiting -= 1
            self._building += 1
        try:
            yield
        finally:
            with self._changed:
                self._building -= 1
                self._changed.notify_all()

    @contextmanager
    def measuring(self) -> Iterator[None]:
        """All cores, once nothing is built or waits to be. Raises RefereeLost when closed meanwhile."""
        with self._changed:
            self._wait_until(lambda: not (self._building or self._waiting or self._measuring))
            self._measuring = True
        try:
            yield
        finally:
            with self._changed:
                self._measuring = False
                self._changed.notify_all()

    def close(self) -> None:
        """Ends every wait."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()

    def _wait_until(self, ready: Callable[[], bool]) -> None:
        self._changed.wait_for(lambda: self._closed or ready())
        if self._closed:
            raise RefereeLost("the engine was closed")
