"""How far batches are, as a page shows it: what `kernelproof status` shows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from kernelproof.db.views import StoredBatch
from kernelproof.report import progress
from kernelproof.report.batches import head, line, progress_of
from kernelproof.types.progress import BatchProgress

MOST = 5
"""Batches at work that are shown whole."""


@dataclass(frozen=True)
class ShownBatch:
    """A batch at work with its table, or a line about one that is over."""

    id: int
    head: str
    over: int = 0
    """Samples that are over."""
    samples: int = 1
    cells: tuple[list[str], list[list[str]]] | None = None
    """Titles and rows of its table."""
    facts: tuple[tuple[str, str], ...] = ()
    """Name and fact of what is worth a line below it."""


def shown_batches(batches: Sequence[StoredBatch]) -> list[ShownBatch]:
    """Those at work; where none is, a line about the newest. `batches`: the newest first."""
    working = [batch for batch in batches if batch.alive][:MOST]
    if working:
        return [_whole(batch) for batch in working]
    return [ShownBatch(batch.id, line(batch)) for batch in batches[:1]]


def _whole(batch: StoredBatch) -> ShownBatch:
    found = progress_of(batch)
    if found is None:
        return ShownBatch(batch.id, head(batch))
    facts = progress.progress_facts(found)
    facts += [("best", text.removeprefix("best").strip()) for text in _best(found)]
    facts += [("failed", progress.failure_line(failure).strip()) for failure in found.failures[:3]]
    cells = progress.progress_cells(found)
    return ShownBatch(batch.id, head(batch), found.whole.over, found.whole.samples, cells, tuple(facts))


def _best(found: BatchProgress) -> list[str]:
    return progress.fastest_lines(found.fastest[:3], several=len(found.models) > 1)
