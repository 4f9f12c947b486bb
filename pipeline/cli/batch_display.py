"""A batch on screen: a table that is drawn anew, a line for each attempt, or a JSON object for each event."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Literal, Self

from rich.console import Console
from rich.live import Live

from kernelproof.cli.batch_summary import print_summary, summary_json
from kernelproof.cli.event_json import event_line
from kernelproof.cli.lines import Lines
from kernelproof.report.plain import clean, json_line, screen
from kernelproof.report.progress import progress_screen, speedup_of, summary_line
from kernelproof.runs.events import Event, Phase, Progress
from kernelproof.types import Status
from kernelproof.types.run import BatchProgress
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
        """How far it is now."""
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

    def summary(self, outcome: Outcome, database: DatabasePlace, name: str | None) -> None:
        """Prints the result of the batch. Called after the display was left."""
        if isinstance(self._shown, _JsonLines):
            print(json_line(summary_json(outcome, database, name, self.now())))
        else:
            print_summary(outcome, database, name, self.now(), self._console)


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
    """Output as lines."""

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
    """`level1/1     sample 0 turn 1  correct  1.432 (1.421 to 1.440, faster)`. `several`: with the model."""
    key, what = event.key, "the best again: " if event.confirmed else ""
    words = f"{clean(key.problem_id):<12} sample {key.sample} turn {key.turn}  {what}{event.status}"
    timed = speedup_of(event.verification) if event.status is Status.CORRECT else ""
    return "  ".join(filter(None, (words, timed, clean(event.model) if several else "")))


def _over_line(event: Event, *, several: bool) -> str:
    """`level1/1     sample 0 is over: no improvement in 6 attempts`."""
    words = f"{clean(event.key.problem_id):<12} sample {event.key.sample} is over: {clean(event.note)}"
    return "  ".join(filter(None, (words, clean(event.model) if several else "")))


class _JsonLines(_Printed):
    """A JSON object on a line for each event."""

    def __init__(self) -> None:
        super().__init__(Lines())
        self._told: dict[tuple[str, str, str, int, int], float] = {}
        """When the tokens of an answer that is coming were last told."""

    def on_event(self, event: Event) -> None:
        key = event.key
        name = (event.model, key.problem_id, key.problem_sha256, key.sample, key.turn)
        if event.phase is not Phase.ANSWERING:
            self._told.pop(name, None)
            self._lines.add(event_line(event))
            return
        now = time.monotonic()
        if now - self._told.get(name, -TOKENS_S) >= TOKENS_S:
            self._told[name] = now
            self._lines.add(event_line(event), needed=False)
