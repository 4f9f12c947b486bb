"""A batch as it runs and as it ended: a table that is drawn anew, a line for each attempt, or JSON lines."""

from __future__ import annotations

import shlex
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Literal, Self

from rich.console import Console
from rich.live import Live

from kernelproof.cli.display import Lines, print_counts
from kernelproof.report.findings import finding_of
from kernelproof.report.plain import clean, json_line, screen
from kernelproof.report.progress import (
    cost,
    failure_line,
    print_fastest_attempts,
    progress_screen,
    progress_table,
    summary_line,
    tokens,
)
from kernelproof.runs.events import Event, Phase, Progress
from kernelproof.types import Response, Status, Verification
from kernelproof.types.run import BatchProgress
from kernelproof.wording import counted
from kernelproof.workspace import DatabasePlace

if TYPE_CHECKING:
    from kernelproof.runs.batch import Outcome

Form = Literal["live", "plain", "json"]
"""A table that is drawn anew, a line for each attempt, or a JSON object for each event."""

REDRAW_S = 0.25
"""Shortest time between two drawings of the table."""
DRAWING_SHARE = 0.01
"""Most of a core's time that drawing takes: it is done less often where it takes longer."""
STILL_S = 1.0
"""Longest time between two drawings, also where drawing is slow: a table that stands still seems to hang."""
SUMMARY_S = 30.0
"""Seconds between two summaries among plain lines."""
TOKENS_S = 1.0
"""Most often that JSON lines say how many tokens of an answer came."""


class BatchDisplay:
    """Shows the events of a batch as they come. Safe to call from any thread.

    Example::

        with BatchDisplay([("openai:MODEL", 48, 3)], "live", lambda: engine.busy_share) as display:
            outcome = anyio.run(work)  # calls display.on_event(event), and stores display.snapshot()
        display.summary(outcome, database, name)

    `live` shows a table on a terminal, and elsewhere does as `plain` does.
    """

    def __init__(
        self,
        plan: Sequence[tuple[str, int, int]],
        form: Form,
        busy_share: Callable[[], float | None] = lambda: None,
    ) -> None:
        """`plan`: name, samples of all problems, and most turns, of each model. `busy_share`: part of their
        time in which referees judged, as the engine knows it."""
        self._console = screen()
        self._progress = Progress(plan)
        self._busy_share = busy_share
        self._shown: _Table | _PlainLines | _JsonLines
        if form == "json":
            self._shown = _JsonLines()
        elif form == "plain" or not self._console.is_terminal:
            self._shown = _PlainLines(self.now, several=len(plan) > 1)
        else:
            self._shown = _Table(self._console, self.now)

    def __enter__(self) -> Self:
        self._shown.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._shown.stop()

    def now(self) -> BatchProgress:
        return self._progress.snapshot(self._busy_share())

    def on_event(self, event: Event) -> None:
        """Something happened to an attempt. Raises BrokenPipeError when nobody reads the lines any more."""
        self._progress.on_event(event)
        self._shown.on_event(event)

    def snapshot(self) -> dict[str, Any]:
        """How far it is, as JSON: what is stored with the batch."""
        return self.now().as_json()

    @property
    def unread(self) -> bool:
        """Whether nobody reads the output any more."""
        return self._shown.unread

    @property
    def heard(self) -> dict[str, Any]:
        """How it hears of the work: arguments of `run_batch` and of `rejudge`."""
        return {"on_event": self.on_event, "progress": self.snapshot, "unread": lambda: self.unread}

    def summary(self, outcome: Outcome, database: DatabasePlace, name: str | None, where: str = "") -> None:
        """Prints the result of the batch. Called after the display was left. `where`: the option that names
        the workspace, with a blank before it."""
        if isinstance(self._shown, _JsonLines):
            print(json_line(summary_json(outcome, database, name, self.now())))
        else:
            print_summary(outcome, database, name, self.now(), self._console, where)


class _Table:
    """A table that a thread draws anew, also while nothing happens: so silence shows."""

    unread = False

    def __init__(self, console: Console, progress: Callable[[], BatchProgress]) -> None:
        self._console, self._progress = console, progress
        self._live = Live(console=console, auto_refresh=False, transient=True)
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._work, name="display", daemon=True)

    def start(self) -> None:
        self._live.start()
        self._thread.start()

    def stop(self) -> None:
        self._over.set()
        self._thread.join()
        self._draw()
        self._live.stop()

    def on_event(self, event: Event) -> None:
        """Nothing: the next drawing shows it."""

    def _work(self) -> None:
        wait = 0.0
        while not self._over.wait(wait):
            began = time.thread_time()
            self._draw()
            wait = min(STILL_S, max(REDRAW_S, (time.thread_time() - began) / DRAWING_SHARE))

    def _draw(self) -> None:
        self._live.update(progress_screen(self._progress(), self._console), refresh=True)


class _Printed:
    def __init__(self, lines: Lines) -> None:
        self._lines = lines

    @property
    def unread(self) -> bool:
        return isinstance(self._lines.failed, BrokenPipeError)

    def start(self) -> None:
        self._lines.start()

    def stop(self) -> None:
        self._lines.stop()


class _PlainLines(_Printed):
    """A line for each attempt that ends, and now and then one for the whole."""

    def __init__(self, progress: Callable[[], BatchProgress], *, several: bool) -> None:
        self._progress, self._several = progress, several
        super().__init__(Lines(on_tick=self._tick))
        self._due = time.monotonic() + SUMMARY_S

    def on_event(self, event: Event) -> None:
        if event.phase is Phase.ENDED and event.status is not None and not event.kept:
            self._lines.add(_ended_line(event, several=self._several))
        elif event.phase is Phase.OVER and event.note:
            self._lines.add(_over_line(event, several=self._several))

    def _tick(self) -> None:
        if time.monotonic() >= self._due and self._lines.failed is None:
            self._due = time.monotonic() + SUMMARY_S
            self._lines.add(summary_line(self._progress()))


def _ended_line(event: Event, *, several: bool) -> str:
    """`level1/1     sample 0 turn 1  correct  1.43× [1.42, 1.44] faster`. `several`: with the model."""
    key, what = event.key, "the best again: " if event.confirmed else ""
    words = f"{clean(key.problem_id):<12} sample {key.sample} turn {key.turn}  {what}{event.status}"
    measured = event.verification.measurement if event.verification else None
    timed = finding_of(measured) if measured and event.status is Status.CORRECT else ""
    return "  ".join(filter(None, (words, timed, clean(event.model) if several else "")))


def _over_line(event: Event, *, several: bool) -> str:
    """`level1/1     sample 0 is over: no improvement in 6 attempts`."""
    words = f"{clean(event.key.problem_id):<12} sample {event.key.sample} is over: {clean(event.note)}"
    return "  ".join(filter(None, (words, clean(event.model) if several else "")))


class _JsonLines(_Printed):
    def __init__(self) -> None:
        super().__init__(Lines())
        self._reported: dict[tuple[str, str, str, int, int], float] = {}
        """When the tokens of an answer that is coming were last told."""

    def on_event(self, event: Event) -> None:
        key = event.key
        name = (event.model, key.problem_id, key.problem_sha256, key.sample, key.turn)
        if event.phase is not Phase.ANSWERING:
            self._reported.pop(name, None)
            self._lines.add(event_line(event))
            return
        now = time.monotonic()
        if now - self._reported.get(name, -TOKENS_S) >= TOKENS_S:
            self._reported[name] = now
            self._lines.add(event_line(event), needed=False)


def print_summary(
    outcome: Outcome,
    database: DatabasePlace,
    name: str | None,
    progress: BatchProgress,
    console: Console,
    where: str,
) -> None:
    def say(text: str) -> None:
        console.print(text, soft_wrap=not console.is_terminal)

    whole = progress.whole
    every = whole.kept == len(outcome.statuses)
    kept = f"; {'all' if every else whole.kept} of them had ended before" if whole.kept else ""
    say(f"{counted(len(outcome.statuses), 'attempt')} in {database}{kept}")
    print_counts(console, outcome.statuses.values())
    if len(progress.models) > 1:
        console.print(progress_table(progress, console))
    if progress.fastest:
        say("best kernels")
        print_fastest_attempts(progress.fastest, console)
    if progress.failures:
        say("what failed most, and the reason given most often")
        for failure in progress.failures:
            say(failure_line(failure, where))
    if whole.answered or whole.reused:
        asked = f"{counted(whole.answered, 'answer')} asked for"
        reused = f", {whole.reused} taken from before" if whole.reused else ""
        say(f"answers  {asked}{reused}")
    if whole.answered:
        say(f"tokens   {tokens(whole)}")
        say(f"cost     {cost(whole).removesuffix(' so far')}")
    if outcome.limit is not None:
        say(f"limit reached: {outcome.limit}")
    if outcome.refused_for_good:
        refused = counted(outcome.refused_for_good, "question")
        say(f"{refused} refused for good: see kernelproof show N; --again provider asks again")
    if outcome.to_retry:
        say(f"{outcome.to_retry} not finished: run the same command again to continue")
    for line in _further(progress, name, where):
        say(line)


def _further(progress: BatchProgress, name: str | None, where: str) -> list[str]:
    numbers = [one.attempt_id for one in progress.fastest] + [one.attempt_id for one in progress.failures]
    number = next((number for number in numbers if number is not None), None)
    of_run = f" --run {shlex.quote(clean(name))}" if name else ""
    shown = [] if number is None else [f"kernelproof show {number}{where}"]
    commands = [f"kernelproof leaderboard{of_run}{where}", *shown]
    return [f"see more: {' · '.join(commands)}"] if progress.whole.ended else []


def summary_json(
    outcome: Outcome, database: DatabasePlace, name: str | None, progress: BatchProgress
) -> dict[str, Any]:
    """For machines: the last line of `--json`."""
    statuses = Counter("interrupted" if s is None else s.value for s in outcome.statuses.values())
    same = ("to_retry", "refused_for_good", "limit")
    return {
        "event": "summary",
        "ended": outcome.ended,
        "run": name,
        "database": str(database),
        "attempts": len(outcome.statuses),
        "statuses": dict(statuses.most_common()),
        **{fact: getattr(outcome, fact) for fact in same},
        "refusals": [str(refusal) for refusal in outcome.refusals],
        **progress.as_json(),
    }


def event_line(event: Event) -> str:
    """One line of ASCII, so that no text of a model's or a server's reaches a terminal as it is."""
    return json_line(event_json(event))


def event_json(event: Event) -> dict[str, Any]:
    """The names are stable; later versions may add some."""
    key = event.key
    facts: dict[str, Any] = {
        "event": event.phase.value,
        "time": datetime.now(UTC).isoformat(timespec="milliseconds"),
        "model": event.model,
        "problem": key.problem_id,
        "sample": key.sample,
    }
    if event.phase is Phase.OVER:
        return facts | ({"reason": event.note} if event.note else {})
    facts |= {"turn": key.turn, "attempt": event.attempt_id}
    if event.phase is Phase.ANSWERING:
        facts["tokens"] = event.tokens
    elif event.phase is Phase.WAITING:
        facts["reason"] = event.note
    elif event.phase is Phase.BATCHED:
        facts |= {"batch": event.batch or None, "reason": event.note}
    elif event.phase is Phase.JUDGING:
        facts["stage"] = event.note
    elif event.phase is Phase.ANSWERED:
        facts |= {"reused": event.reused, **_answer(event.response)}
    elif event.phase is Phase.ENDED:
        said = event.verification.reason if event.verification is not None else event.note
        facts["status"] = event.status.value if event.status is not None else None
        facts |= {"reason": said or None, "kept": event.kept, **_times(event.verification)}
        facts |= {"confirmed": True} if event.confirmed else {}
    return facts


def _answer(response: Response | None) -> dict[str, Any]:
    if response is None:
        return {}
    names = ("usage", "cost_usd", "latency_s", "finish_reason", "served_model", "refusal")
    return {name: getattr(response, name) for name in names}


def _times(verification: Verification | None) -> dict[str, Any]:
    found = verification.measurement if verification is not None else None
    if found is None:
        return {"speedup": None}
    interval = found.speedup_interval
    ends = {"speedup": found.speedup, "speedup_low": interval.low, "speedup_high": interval.high}
    return {**ends, **{name: getattr(found, name) for name in ("pace", "candidate_ms", "baseline_ms")}}
