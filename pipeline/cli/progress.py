"""Progress on screen: a bar with counts by status, or one line an attempt or candidate; counts at the end."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Self

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from pipeline.report.plain import clean
from pipeline.runs.conversation import OVER
from pipeline.types import AttemptKey, Status

if TYPE_CHECKING:
    from pipeline.runs.batch import Outcome

ENDS = frozenset(Status)


class Display:
    """A bar, or a line for each that ends; safe to call from any thread."""

    def __init__(self, what: str, total: int, *, plain: bool = False) -> None:
        self._console = Console(highlight=False)
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


class BatchDisplay(Display):
    """Shows the events of a batch as they come."""

    def __init__(self, samples: int, *, plain: bool) -> None:
        super().__init__("samples", samples, plain=plain)

    def on_event(self, key: AttemptKey, what: str) -> None:
        """A stage's name when an attempt enters it, a status when it ends, OVER when a sample does."""
        if what == OVER:
            self.advance()
        if what in ENDS:
            self.ended(f"{key.problem_id:<12} sample {key.sample} turn {key.turn}", what)

    def summary(self, outcome: Outcome, database: Path) -> None:
        """What the batch came to."""
        self._console.print(f"{len(outcome.statuses)} attempts in {database}", markup=False, soft_wrap=True)
        print_counts(self._console, outcome.statuses.values())
        if outcome.to_retry:
            self._console.print(
                f"{outcome.to_retry} not finished: run the same command again to continue", markup=False
            )


def print_counts(console: Console, statuses: Iterable[Status | None]) -> None:
    """How often each status, the most frequent first; None is `interrupted`."""
    counts = Counter("interrupted" if status is None else status.value for status in statuses)
    for name, number in counts.most_common():
        console.print(f"  {number:>4}  {name}", markup=False)
