"""The progress of a batch on screen: a bar with counts by status, or one line an attempt."""

from __future__ import annotations

import threading
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from pipeline.execution.conversation import OVER
from pipeline.nouns import AttemptKey, Status

if TYPE_CHECKING:
    from pipeline.execution.batch import Outcome

ENDS = frozenset(Status)


class BatchDisplay:
    """Shows events as they come; safe to call from any thread."""

    def __init__(self, samples: int, *, plain: bool) -> None:
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
        self._task = self._progress.add_task("samples", total=samples, counts="")

    def __enter__(self) -> BatchDisplay:
        self._progress.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._progress.stop()

    def on_event(self, key: AttemptKey, what: str) -> None:
        """A stage's name when an attempt enters it, a status when it ends, OVER when a sample does."""
        if what == OVER:
            self._progress.update(self._task, advance=1)
        if what not in ENDS:
            return
        with self._lock:
            self._counts[what] += 1
            counts = "  ".join(f"{name} {number}" for name, number in self._counts.most_common())
            self._progress.update(self._task, counts=counts)
        if self._plain:
            self._console.print(
                f"{key.problem_id:<12} sample {key.sample} turn {key.turn}  {what}", markup=False
            )

    def summary(self, outcome: Outcome, database: Path) -> None:
        """What the batch came to."""
        counts = Counter("interrupted" if s is None else s.value for s in outcome.statuses.values())
        self._console.print(f"{len(outcome.statuses)} attempts in {database}", markup=False, soft_wrap=True)
        for name, number in counts.most_common():
            self._console.print(f"  {number:>4}  {name}", markup=False)
        if outcome.to_retry:
            self._console.print(
                f"{outcome.to_retry} not finished: run the same command again to continue", markup=False
            )
