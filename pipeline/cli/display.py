"""Output while work goes on: lines that a thread prints, and a bar with counts by status."""

from __future__ import annotations

import errno
import os
import queue
import select
import stat
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable
from typing import Self, TextIO

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from kernelproof.report.plain import clean, screen
from kernelproof.types import Status

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


class Display:
    """A bar on a terminal; elsewhere, and for JSON, lines."""

    def __init__(self, what: str, total: int, *, as_json: bool = False) -> None:
        console = screen()
        self._as_json = as_json
        self._lines = Lines() if as_json or not console.is_terminal else None
        self._counts: Counter[str] = Counter()
        self._progress = Progress(
            TextColumn("{task.description}"),
            BarColumn(bar_width=24),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            TextColumn("{task.fields[counts]}"),
            console=console,
            disable=self._lines is not None,
        )
        self._task = self._progress.add_task(what, total=total, counts="")

    def __enter__(self) -> Self:
        if self._lines is not None:
            self._lines.start()
        self._progress.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._progress.stop()
        if self._lines is not None:
            self._lines.stop()

    @property
    def lines(self) -> bool:
        """Whether lines are printed, not a bar."""
        return self._lines is not None

    @property
    def unread(self) -> bool:
        """Whether nobody reads the output any more."""
        return self._lines is not None and isinstance(self._lines.failed, BrokenPipeError)

    def ended(self, name: str, status: str, line: str) -> None:
        """One of the total is done; `line` is what JSON says of it.

        Raises BrokenPipeError when nobody reads any more.
        """
        self._counts[status] += 1
        counts = "  ".join(f"{name} {number}" for name, number in self._counts.most_common())
        self._progress.update(self._task, advance=1, counts=counts)
        if self._lines is not None:
            self._lines.add(line if self._as_json else f"{clean(name)}  {status}")


def print_counts(console: Console, statuses: Iterable[Status | None]) -> None:
    """How often each status, the most frequent first; None is `interrupted`."""
    counts = Counter("interrupted" if status is None else status.value for status in statuses)
    for name, number in counts.most_common():
        console.print(f"  {number:>4}  {name}", markup=False)
