"""The cost of showing a batch: ``python -m benchmarks.display``.

Counts a stream of synthetic events (invented model and answers), at most 2,000 attempts in flight, and
draws the table. Measures CPU time and memory; asserts nothing.
"""

from __future__ import annotations

import argparse
import io
import time
import tracemalloc
from collections.abc import Iterator

from rich.console import Console

from kernelproof.report.progress import progress_screen
from kernelproof.runs.events import Event, Phase, Progress
from kernelproof.types import AttemptKey, Response, Status, Usage

IN_FLIGHT = 2_000
MODEL = "openai:synthetic"
ANSWER = Response(text=None, usage=Usage(prompt_tokens=900, completion_tokens=2_000), cost_usd=0.01)


def events(count: int) -> Iterator[Event]:
    """About so many events: IN_FLIGHT attempts at a time go their way from the question to the end."""
    sent, first = 0, 0
    while sent < count:
        keys = [
            AttemptKey(problem_id=f"level1/{n % 100}", problem_sha256="0" * 64, sample=n, turn=1)
            for n in range(first, first + IN_FLIGHT)
        ]
        first += IN_FLIGHT
        ways: list[dict[str, object]] = [
            {"phase": Phase.SENT},
            *({"phase": Phase.ANSWERING, "tokens": 200 * n} for n in range(1, 11)),
            {"phase": Phase.ANSWERED, "response": ANSWER},
            {"phase": Phase.JUDGING, "note": "build"},
            {"phase": Phase.ENDED, "status": Status.WRONG_OUTPUT, "note": "3 of 4096 elements wrong"},
            {"phase": Phase.OVER},
        ]
        for facts in ways:
            for key in keys:
                yield Event(MODEL, key, **facts)  # type: ignore[arg-type]
                sent += 1


def count(number: int) -> tuple[int, float, Progress]:
    """Events, CPU seconds of counting them, and what was counted."""
    progress, stream = Progress([(MODEL, number, 1)]), list(events(number))
    began = time.process_time()
    for event in stream:
        progress.on_event(event)
    return len(stream), time.process_time() - began, progress


def main() -> None:
    """Prints what was measured."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--events", type=int, default=100_000)
    number = parser.parse_args().events
    sent, seconds, _ = count(number)
    print(f"{sent:,} events in {seconds:.2f} s of CPU time: {1e6 * seconds / sent:.1f} us each")
    tracemalloc.start()
    progress = Progress([(MODEL, number, 1)])
    for event in events(number):
        progress.on_event(event)
    kept, most = tracemalloc.get_traced_memory()
    print(f"memory: {kept / 1e6:.2f} MB kept, {most / 1e6:.2f} MB at most, events included")
    tracemalloc.stop()
    progress = Progress([(MODEL, IN_FLIGHT, 1)])
    for event in list(events(1))[: 6 * IN_FLIGHT]:
        progress.on_event(event)
    console = Console(file=io.StringIO(), width=140, force_terminal=True)
    began = time.process_time()
    for _ in range(50):
        console.print(progress_screen(progress.snapshot(), console))
    each = (time.process_time() - began) / 50
    print(f"a drawing with {IN_FLIGHT:,} attempts in flight: {1e3 * each:.1f} ms of CPU time")


if __name__ == "__main__":
    main()
