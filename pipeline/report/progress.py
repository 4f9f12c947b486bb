"""How far a batch is, on screen: a table by model, and lines below it. All of it made safe."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from pydantic import ValidationError
from rich.console import Console, Group, RenderableType
from rich.table import Table
from rich.text import Text

from kernelproof.db.views import StoredBatch
from kernelproof.report.findings import gist, times
from kernelproof.report.layout import Column, attempt_number, fitting, percent, scaled, shortened
from kernelproof.report.plain import clean
from kernelproof.types import Status
from kernelproof.types.run import AT_SERVER, HERE, BatchProgress, FailureCount, FastAttempt, ModelProgress
from kernelproof.wording import counted

LONG_SILENCE_S = 20.0
_LONGEST_NAME = 120
UNKNOWN = "unknown"
_STATUSES_SHOWN = 6
_BATCHES_SHOWN = 5


def _place(name: str, title: str = "", **more: Any) -> Column:
    return Column(title or name, lambda m: str(m.places.get(name) or ""), **more)


COLUMNS = (
    Column("model", lambda m: _name(m.model), number=False, fit=shortened),
    Column("samples", lambda m: f"{m.over}/{m.samples}"),
    _place("elsewhere", optional=True),
    _place("asking", "to ask", optional=True),
    _place("sent", "asked", spare=4),
    _place("answering", spare=5),
    _place("batched", "in batches", optional=True),
    Column("tokens/s", lambda m: "" if m.tokens_per_s is None else f"{m.tokens_per_s:.0f}"),
    _place("waiting", optional=True, spare=3),
    *(_place(name, spare=1) for name in HERE),
    Column("correct", lambda m: f"{m.correct}/{m.ended}"),
    Column("best", lambda m: "" if m.fastest is None else times(m.fastest)),
    Column("tokens", lambda m: _short_tokens(m), spare=2),
    Column("cost", lambda m: short_cost(m)),
    Column("left", lambda m: "" if m.left_s is None else duration(m.left_s) if m.left_s else "done", spare=2),
)
"""Of a batch's table, a row for each model. The lines below it have what finds no room, of all models."""


def progress_table(progress: BatchProgress, console: Console) -> Table:
    # A table that is drawn anew keeps its columns as far as it can.
    done = progress.whole.over >= progress.whole.samples
    columns = [replace(column, optional=column.optional or done) for column in COLUMNS]
    return fitting(columns, _rows(progress), console).table


def _rows(progress: BatchProgress) -> list[ModelProgress]:
    return [*progress.models, progress.whole] if len(progress.models) > 1 else list(progress.models)


def progress_cells(progress: BatchProgress) -> tuple[list[str], list[list[str]]]:
    """The whole table as texts: titles, and a row for each model. Columns without anything are left out."""
    rows = _rows(progress)
    columns = [column for column in COLUMNS if any(map(column.cell, rows))]
    return [column.title for column in columns], [[str(c.cell(row)) for c in columns] for row in rows]


def _name(model: str) -> str:
    """A model's name, on one line and of a length that cannot fill the screen."""
    return shortened(" ".join(clean(model).split()) or "?", _LONGEST_NAME)


def progress_screen(progress: BatchProgress, console: Console) -> RenderableType:
    facts = [f"{title:<9} {fact}" for title, fact in progress_facts(progress)]
    lines = [*facts, *fastest_lines(progress.fastest[:3], several=len(progress.models) > 1)]
    return Group(progress_table(progress, console), Text(), *map(_line, lines))


def _line(text: str) -> Text:
    return Text(clean(text), no_wrap=True, overflow="ellipsis")


def progress_facts(progress: BatchProgress) -> list[tuple[str, str]]:
    """Name and fact of what is worth a line below the table."""
    whole = progress.whole
    here = [f"{whole.places[place]} {place}" for place in HERE if place in whole.places]
    facts = [
        ("judging", ", ".join(here)),
        *((_ended_title(progress, model), statuses(model.statuses)) for model in progress.models),
        ("tokens", tokens(whole) if whole.answered and tokens(whole) != UNKNOWN else ""),
        ("cost", cost(whole)),
        ("waiting", _waiting(whole)),
        *(("batch", batch) for batch in _batches(whole)),
        ("elsewhere", _elsewhere(whole)),
        ("silence", _silence(whole)),
        ("referees", "" if progress.busy_share is None else f"{percent(progress.busy_share)} busy"),
        ("time", _time(progress)),
    ]
    return [(title, fact) for title, fact in facts if fact]


def _ended_title(progress: BatchProgress, model: ModelProgress) -> str:
    return "ended" if len(progress.models) == 1 else f"ended     {_name(model.model)}:"


def statuses(counts: Mapping[Status, int]) -> str:
    """`7 correct, 3 wrong_output`, the most frequent first, the rest as one number."""
    ranked = sorted(counts.items(), key=lambda one: -one[1])
    said = [f"{number} {status.value}" for status, number in ranked[:_STATUSES_SHOWN]]
    rest = sum(number for _, number in ranked[_STATUSES_SHOWN:])
    return ", ".join([*said, f"{rest} others"] if rest else said)


def _waiting(model: ModelProgress) -> str:
    number = model.places.get("waiting", 0)
    if not number:
        return ""
    why = f": {model.waiting_for}" if model.waiting_for else ""
    return f"{counted(number, 'question')} to be sent again later{why}"


def _batches(model: ModelProgress) -> list[str]:
    """How far the batches are that questions wait for."""
    more = len(model.batches) - _BATCHES_SHOWN
    rest = [f"and {counted(more, 'more batch', 'more batches')}"] if more > 0 else []
    return [*model.batches[:_BATCHES_SHOWN], *rest]


def _elsewhere(model: ModelProgress) -> str:
    number = model.places.get("elsewhere", 0)
    return f"another command is at work on {counted(number, 'attempt')}" if number else ""


def _silence(model: ModelProgress) -> str:
    if model.silence_s is None or model.silence_s < LONG_SILENCE_S:
        return ""
    return f"no sign of the server for {duration(model.silence_s)} on the question that waits longest"


def _time(progress: BatchProgress) -> str:
    if progress.whole.over >= progress.whole.samples:
        return duration(progress.elapsed_s)
    left = progress.left_s
    so_far = f"{duration(progress.elapsed_s)} so far"
    return f"{so_far}, about {duration(left)} left" if left else so_far


def fastest_lines(fastest: Sequence[FastAttempt], *, several: bool) -> list[str]:
    """The best attempts, a line for each. `several`: the model is named."""
    lines = []
    for number, one in enumerate(fastest):
        attempt = "" if one.attempt_id is None else f"  #{one.attempt_id}"
        model = f"  {_name(one.model)}" if several else ""
        lines.append(f"{'' if number else 'best':<9} {speedup(one)}  {clean(one.problem_id)}{attempt}{model}")
    return lines


def speedup(one: FastAttempt) -> str:
    """`1.43× [1.42, 1.44] faster`."""
    return f"{times(one.speedup, one)} {one.pace}" + (", screened" if one.screened else "")


def print_fastest_attempts(fastest: Sequence[FastAttempt], console: Console) -> None:
    """The best attempts as the end of a batch shows them."""
    columns = (
        Column("problem", lambda one: one.problem_id, False),
        Column("speedup, 95 % interval", speedup, False),
        Column("attempt", lambda one: attempt_number(one.attempt_id), False),
        Column("model", lambda one: _name(one.model), False, shortened),
    )
    console.print(fitting(columns, fastest, console).table)


def failure_line(failure: FailureCount, where: str = "") -> str:
    """`12 wrong_output, most often: ... (kernelproof show 17)`, `where`: the workspace's option."""
    said = f"{failure.count:>4}  {failure.status.value}"
    reason = gist(failure.reason or failure.status.meaning)
    shown = "" if failure.attempt_id is None else f" (kernelproof show {failure.attempt_id}{where})"
    return f"{said}: {clean(reason)}{shown}"


def summary_line(progress: BatchProgress) -> str:
    whole = progress.whole
    places = {
        "at the server": sum(whole.places.get(place, 0) for place in AT_SERVER),
        "in another command": whole.places.get("elsewhere", 0),
        **{place: whole.places.get(place, 0) for place in HERE},
    }
    parts = [
        f"{whole.over} of {counted(whole.samples, 'sample')}",
        *(f"{number} {place}" for place, number in places.items() if number),
        f"{whole.correct} of {counted(whole.ended, 'attempt')} correct" if whole.ended else "",
        f"tokens {tokens(whole)}" if tokens(whole) != UNKNOWN else "",
        f"cost {cost(whole)}" if whole.cost_usd is not None else "",
        _waiting(whole),
        *(f"batch: {batch}" for batch in _batches(whole)),
        _silence(whole),
        f"about {duration(progress.left_s)} left" if progress.left_s else "",
    ]
    return clean(f"-- {duration(progress.elapsed_s)}: {'; '.join(part for part in parts if part)}")


def tokens(model: ModelProgress) -> str:
    """`12,000 for prompts (8,000 cached), 3,400 for answers (2,000 reasoning)`; unknown ones are said."""
    counts = model.tokens
    if counts.prompt is None and counts.completion is None:
        return UNKNOWN
    parts = [
        _counted_tokens(counts.prompt, "for prompts", counts.cached, "cached"),
        _counted_tokens(counts.completion, "for answers", counts.reasoning, "reasoning"),
    ]
    unknown = f", {counted(counts.unknown, 'answer')} without counts" if counts.unknown else ""
    return f"{', '.join(parts)}{unknown}"


def _counted_tokens(number: int | None, what: str, part: int | None, named: str) -> str:
    said = "unknown" if number is None else f"{number:,}"
    return f"{said} {what} ({part:,} {named})" if part is not None else f"{said} {what}"


def cost(model: ModelProgress) -> str:
    """`$1.20 so far, about $5.10 at the end`; empty as long as nothing was asked."""
    if not model.answered:
        return ""
    without = f"{counted(model.unpriced, 'answer')} without a price"
    if model.cost_usd is None:
        return f"unknown: {without}"
    if model.unpriced:
        return f"at least {dollars(model.cost_usd)}, {without}"
    if model.over >= model.samples:
        return dollars(model.cost_usd)
    at_end = "" if model.projected_usd is None else f", about {dollars(model.projected_usd)} at the end"
    return f"{dollars(model.cost_usd)} so far{at_end}"


def short_cost(model: ModelProgress) -> str:
    if not model.answered:
        return ""
    if model.cost_usd is None:
        return "unknown"
    return f"{'>=' if model.unpriced else ''}{dollars(model.cost_usd)}"


def dollars(value: float) -> str:
    """Whole cents, and two digits of what is less than ten cents."""
    return f"${value:,.2f}" if value >= 0.1 or value == 0 else f"${value:.2g}"


def _short_tokens(model: ModelProgress) -> str:
    counts = [model.tokens.prompt, model.tokens.completion]
    known = [count for count in counts if count is not None]
    if not known and not model.streamed:
        return "unknown" if model.answered else ""
    return scaled(sum(known) + model.streamed, "").strip()


def duration(seconds: float) -> str:
    """`45 s`, `12 min`, `3 h 20 min`."""
    if seconds < 99.5:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    if minutes < 100:
        return f"{minutes} min"
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if hours < 48 else f"{hours // 24} d {hours % 24} h"


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
