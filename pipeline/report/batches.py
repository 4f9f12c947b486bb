"""Stored batches on screen: the newest as its display showed it, a line for each older one."""

from __future__ import annotations

from collections.abc import Sequence

from pydantic import ValidationError
from rich.console import Console, Group, RenderableType
from rich.text import Text

from kernelproof.db.views import StoredBatch
from kernelproof.report.plain import clean
from kernelproof.report.progress import (
    UNKNOWN,
    cost,
    duration,
    failure_line,
    progress_screen,
    statuses,
    tokens,
)
from kernelproof.types.run import BatchProgress
from kernelproof.wording import counted

STALE_S = 10.0
"""A sign of life that is older is said to be so old."""


def progress_of(batch: StoredBatch) -> BatchProgress | None:
    """How far a batch was; None where it said nothing yet, or another version of kernelproof wrote it."""
    try:
        return BatchProgress.model_validate(batch.progress)
    except ValidationError:
        return None


def batches_screen(batches: Sequence[StoredBatch], console: Console) -> RenderableType:
    """The newest batch first and whole, then the older ones."""
    newest, *older = batches
    parts: list[RenderableType] = [Text(head(newest), style="bold")]
    progress = progress_of(newest)
    if progress is not None:
        parts.append(progress_screen(progress, console))
        if not newest.alive:
            parts += [Text(failure_line(failure)) for failure in progress.failures]
    if older:
        parts += [Text(), Text("before", style="bold"), *(Text(line(batch)) for batch in older)]
    return Group(*parts)


def head(batch: StoredBatch) -> str:
    """`batch 3, run night (runs 1, 2), begun 2026-11-25 20:10:01 UTC: at work`."""
    return clean(f"batch {batch.id}, {_what(batch)}, begun {_when(batch)}: {_state(batch)}")


def line(batch: StoredBatch) -> str:
    """The same, and what it came to, on one line."""
    progress = progress_of(batch)
    return f"{head(batch)}; {outcome(progress)}" if progress is not None else head(batch)


def outcome(progress: BatchProgress) -> str:
    """`48 of 48 samples in 12 min; 40 correct, 8 wrong_output; tokens ...; cost $1.20`."""
    whole = progress.whole
    parts = [
        f"{whole.over} of {counted(whole.samples, 'sample')} in {duration(progress.elapsed_s)}",
        statuses(whole.statuses),
        f"tokens {tokens(whole)}" if tokens(whole) != UNKNOWN else "",
        f"cost {cost(whole)}" if whole.answered else "",
    ]
    return "; ".join(part for part in parts if part)


def _what(batch: StoredBatch) -> str:
    runs = f"{'run' if len(batch.runs) == 1 else 'runs'} {', '.join(map(str, batch.runs))}"
    name = f"run {' '.join(batch.name.split())} ({runs})" if batch.name else runs
    kind = next((kind for kind in ("rejudge", "tune") if kind in batch.config), None)
    return f"{kind} of {name}" if kind else name


def _when(batch: StoredBatch) -> str:
    return f"{batch.created[:19].replace('T', ' ')} UTC"


def _state(batch: StoredBatch) -> str:
    ago = f"{duration(batch.silent_s)} ago"
    if batch.ended is not None:
        return " ".join(batch.ended.split())
    if not batch.alive:
        return f"killed, or lost its machine; last seen {ago}"
    return f"at work, last seen {ago}" if batch.silent_s > STALE_S else "at work"
