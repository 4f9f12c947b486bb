"""When each stage of each verification began and ended, from what the engine tells while it works."""

from __future__ import annotations

import itertools
import math
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass

from benchmarks.candidates import Work
from kernelproof.jobs.judge import places
from kernelproof.types import Verification, VerifySettings
from kernelproof.verifier.engine.engine import Engine

WAITING = "waiting for "
"""How a stage begins that is a wait for another process's measurement."""
QUEUE = "referee"
"""Between a build and the referee's first word: it starts, or is busy with another candidate."""


@dataclass(frozen=True)
class Span:
    """One stage of one candidate, in seconds of `time.monotonic`."""

    candidate: int
    stage: str
    begin: float
    end: float

    @property
    def seconds(self) -> float:
        return self.end - self.begin


@dataclass(frozen=True)
class Watched:
    """A verification and its stages, one after the other without gaps."""

    number: int
    """The candidate's."""
    verification: Verification
    spans: tuple[Span, ...]


def watched(engine: Engine, work: Work, settings: VerifySettings, number: int = 0) -> Watched:
    """Verifies one candidate and notes when its stages begin. Raises what `Engine.verify` raises."""
    events = [("review", time.monotonic())]
    verdict = engine.verify(
        work.source, work.problem, settings, lambda stage: events.append((stage, time.monotonic()))
    )
    events.append(("end", time.monotonic()))
    return Watched(number, verdict, spans_of(number, events, verdict.stage_seconds.get("build", 0.0)))


def watched_batch(
    engine: Engine,
    work: Sequence[Work],
    settings: VerifySettings,
    *,
    first: int = 0,
    seconds: float | None = None,
) -> Iterator[Watched]:
    """All from the `first` on, as they are done, as many in flight as a batch has.

    `seconds`: after so many none is begun. Nothing is kept here. Raises what `Engine.verify` raises.
    """
    until = math.inf if seconds is None else time.monotonic() + seconds

    def one(number: int) -> Watched | None:
        if time.monotonic() >= until:
            return None
        return watched(engine, work[number], settings, number)

    with ThreadPoolExecutor(places()) as pool:
        for done in as_completed([pool.submit(one, number) for number in range(first, len(work))]):
            seen = done.result()
            if seen is not None:
                yield seen


def spans_of(number: int, events: Sequence[tuple[str, float]], build_s: float) -> tuple[Span, ...]:
    """Each stage until the next begins, but for the build: after it the candidate waits for the referee."""
    found = []
    for (stage, begin), (_, end) in itertools.pairwise(events):
        if stage == "build":
            built = min(begin + build_s, end)
            found.append(Span(number, stage, begin, built))
            found.append(Span(number, QUEUE, built, end))
        else:
            name = "waiting" if stage.startswith(WAITING) else stage
            found.append(Span(number, name, begin, end))
    return tuple(found)
