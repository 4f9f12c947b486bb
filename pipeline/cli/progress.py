"""Progress of `verify` on many candidates: a bar with counts by status, or one line a candidate."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterable
from contextlib import suppress
from typing import Self

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from kernelproof.report.plain import clean, screen
from kernelproof.types import Status


class Display:
    """A bar, or a line for each that ends; safe to call from any thread."""

    def __init__(self, what: str, total: int, *, plain: bool = False) -> None:
        self._console = screen()
        self._plain = plain or not self._console.is_terminal
        self._lock = threading.Lock()
        self._counts: Counter[str] = Counter()
        self._progress = Progress(
            TextColumn("{task.description}"),
            BarColumn(bar_width=24),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            TextColumn("{task.fields[counts]}"),
            console=self._console,
            disable=self._plain,
        )
        self._task = self._progress.add_task(what, total=total, counts="")

    def __enter__(self) -> Self:
        self._progress.start()
        return self

    def __exit__(self, *_: object) -> None:
        with suppress(BrokenPipeError):
            self._progress.stop()

    def advance(self) -> None:
        """One of the total is done."""
        self._progress.update(self._task, advance=1)

    def ended(self, name: str, status: str) -> None:
        """Counts a status; without a bar, says whose it is."""
        with self._lock:
            self._counts[status] += 1
            counts = "  ".join(f"{name} {number}" for name, number in self._counts.most_common())
            self._progress.update(self._task, counts=counts)
        if self._plain:
            self._console.print(f"{clean(name)}  {status}", markup=False, soft_wrap=True)


def print_counts(console: Console, statuses: Iterable[Status | None]) -> None:
    """How often each status, the most frequent first; None is `interrupted`."""
    counts = Counter("interrupted" if status is None else status.value for status in statuses)
    for name, number in counts.most_common():
        console.print(f"  {number:>4}  {name}", markup=False)
