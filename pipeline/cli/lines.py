"""Lines for readers that are no terminal: printed by a thread, so that a slow reader stops no work."""

from __future__ import annotations

import errno
import os
import queue
import select
import stat
import sys
import threading
import time
from collections.abc import Callable
from typing import TextIO

TICK_S = 0.25
"""Seconds between two looks: is the reader still there, and is something due to be printed?"""
MOST_WAITING = 20_000
"""Lines that wait for a slow reader; those that may be left out are, from then on."""


class Lines:
    """Prints lines in the order in which they are given. Thread-safe."""

    def __init__(self, stream: TextIO | None = None, on_tick: Callable[[], None] = lambda: None) -> None:
        """`on_tick` is called in the thread, four times a second."""
        self._stream = stream or sys.stdout
        self._on_tick = on_tick
        self._waiting: queue.SimpleQueue[str | None] = queue.SimpleQueue()
        self.failed: OSError | None = None
        """Why nothing can be printed any more; a BrokenPipeError where nobody reads."""
        self._watched = _pipe_of(self._stream)
        self._thread = threading.Thread(target=self._work, name="lines", daemon=True)

    def start(self) -> None:
        """Begins to print."""
        self._thread.start()

    def stop(self) -> None:
        """Prints what waits, and ends. Waits for the reader as long as it is there."""
        self._waiting.put(None)
        if self._thread.is_alive():
            self._thread.join()

    def add(self, line: str, *, needed: bool = True) -> None:
        """One line, without its end.

        Raises BrokenPipeError when nobody reads any more, and the OSError of a disk that is full.
        """
        if self.failed is not None:
            raise self.failed
        if needed or self._waiting.qsize() < MOST_WAITING:
            self._waiting.put(line)

    def _work(self) -> None:
        due = time.monotonic() + TICK_S
        while self.failed is None:
            try:
                line = self._waiting.get(timeout=max(0.0, due - time.monotonic()))
            except queue.Empty:
                line = ""
            if line is None:
                return
            if line:
                self._print(line)
            if time.monotonic() >= due:
                due = time.monotonic() + TICK_S
                self._look()
                self._on_tick()

    def _print(self, line: str) -> None:
        try:
            self._stream.write(line + "\n")
            if self._waiting.empty():
                self._stream.flush()
        except OSError as error:
            self.failed = error
        except ValueError:  # the stream was closed
            self.failed = _nobody()

    def _look(self) -> None:
        if self.failed is None and self._is_gone():
            self.failed = _nobody()

    def _is_gone(self) -> bool:
        """Whether the other end of a pipe was closed, which no write tells while nothing is written."""
        if self._watched is None:
            return False
        poll = select.poll()
        poll.register(self._watched, 0)
        return any(happened & select.POLLERR for _, happened in poll.poll(0))


def _nobody() -> BrokenPipeError:
    return BrokenPipeError(errno.EPIPE, "nobody reads the output any more")


def _pipe_of(stream: TextIO) -> int | None:
    """The number of a stream whose reader may go away."""
    try:
        number = stream.fileno()
        mode = os.fstat(number).st_mode
    except (OSError, ValueError):
        return None
    return number if stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode) else None
