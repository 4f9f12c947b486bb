"""Progress of `verify` on many candidates: a bar with counts by status, or a line for each that ends."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Self

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from kernelproof.cli.lines import Lines
from kernelproof.report.plain import clean, screen
from kernelproof.types import Status


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
