"""The time that the service adds to its engine's.

An evaluation's latency is divided into three parts:

- the wait for a free place: until, of the evaluations begun before it, one more has ended than there are
  places too few;
- the engine's own time, as the worker notes it around the call;
- the rest, which is the overhead: HTTP, the queue, the worker's look into it, storing and answering.

The same engine is called directly, as many candidates at a time as there are places.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from benchmarks.candidates import Work, candidates
from benchmarks.evidence import table
from benchmarks.service.engines import Noted, StandIn, Verifies, read_notes
from benchmarks.service.load import Answered, send_all
from benchmarks.service.running import cpu_seconds, service, working
from kernelproof.db.evaluation_records import StoredEvaluation
from kernelproof.db.store import open_store
from kernelproof.engine.engine import Engine
from kernelproof.hashing import sha256_text
from kernelproof.runs.sizes import choose_size
from kernelproof.runs.stream import verify_persistently
from kernelproof.types import Rigor, Verification, VerifySettings


@dataclass(frozen=True)
class Parts:
    """Seconds of one evaluation."""

    total: float
    """From the sending of the request to its answer."""
    place: float
    """Waiting for a free place."""
    engine: float
    before: float
    """From a free place, or the sending if that is later, until the engine begins."""
    after: float
    """From the engine's end to the answer."""

    @property
    def overhead(self) -> float:
        """The rest beside the engine's time and the wait for a place."""
        return self.before + self.after


def parts_of(
    answered: Sequence[Answered],
    stored: dict[str, StoredEvaluation],
    calls: dict[str, tuple[float, float]],
    keys: Sequence[str],
    places: int,
) -> list[Parts]:
    """The parts of each, in the order in which they were begun. `keys`: SHA-256 of each one's source."""
    begun = sorted(answered, key=lambda each: calls[keys[each.number]][0])
    ends = sorted(stored[each.said["id"]].finished or 0.0 for each in answered)
    found = []
    for turn, each in enumerate(begun):
        free = ends[turn - places] if turn >= places else each.sent
        began, ended = calls[keys[each.number]]
        ready = min(began, max(each.sent, free))
        found.append(
            Parts(
                total=each.answered - each.sent,
                place=ready - each.sent,
                engine=ended - began,
                before=began - ready,
                after=each.answered - ended,
            )
        )
    return found


def percentile(values: Sequence[float], share: float) -> float:
    """The value that `share` of them do not exceed."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


@dataclass(frozen=True)
class Load:
    """One measurement's settings."""

    backend: str
    count: int
    in_flight: int
    places: int
    stand_in_s: float | None
    """Seconds of the stand-in; None: the real engine."""
    together: bool
    """Whether all callers begin at the same moment, and not spread over an engine's time."""


def measured(load: Load, verdict: Path | None) -> dict[str, Any]:
    """The figures of one load. `verdict`: the file that the stand-in answers with."""
    work = candidates(load.backend, load.count)
    settings = {"size": choose_size(None, load.backend, [each.problem for each in work])}
    bodies = [{"problem": each.problem.id, "source": each.source, "settings": settings} for each in work]
    keys = [sha256_text(each.source) for each in work]
    spread = 0.0 if load.together else max(1.0, load.stand_in_s or 0.0)
    chance = random.Random(1)
    delays = [chance.uniform(0.0, spread) for _ in range(load.in_flight)]
    options = [] if verdict is None else ["--stand-in", str(verdict), "--seconds", str(load.stand_in_s)]
    with tempfile.TemporaryDirectory(prefix="kernelproof-service-") as folder:
        with (
            service(Path(folder), load.backend) as running,
            working(running, load.places, options) as worker,
        ):
            processes = running.api, worker
            before, began = [cpu_seconds(each) for each in processes], time.monotonic()
            answered = asyncio.run(send_all(running.host, running.port, bodies, load.in_flight, delays))
            wall, after = time.monotonic() - began, [cpu_seconds(each) for each in processes]
            resident = [each.memory_info().rss for each in processes]
            calls = read_notes(running.notes)
            with open_store(running.database, only_read=True) as store:
                found = [store.service.evaluations.get(each.said["id"]) for each in answered]
        direct = directly(work, load, settings["size"], verdict, Path(folder))
    stored = {each.id: each for each in found if each is not None}
    parts = parts_of(answered, stored, calls, keys, load.places)
    return {
        **asdict(load),
        "load_average": os.getloadavg(),
        "wall_s": wall,
        "direct_wall_s": direct,
        "api_cpu_s": after[0] - before[0],
        "worker_cpu_s": after[1] - before[1],
        "api_rss": resident[0],
        "worker_rss": resident[1],
        "parts": [asdict(each) for each in parts],
        "overhead_s": {
            str(share): percentile([each.overhead for each in parts], share)
            for share in (0.5, 0.95, 0.99, 1.0)
        },
    }


def directly(work: Sequence[Work], load: Load, size: str, verdict: Path | None, folder: Path) -> float:
    """Wall seconds of the same engine for the same candidates, called from threads."""
    settings = VerifySettings(backend=load.backend, size=size, rigor=Rigor.QUICK)
    with ExitStack() as stack, ThreadPoolExecutor(load.places) as pool:
        engine: Verifies
        if verdict is None or load.stand_in_s is None:
            engine = stack.enter_context(Engine(many=True))
        else:
            engine = StandIn(Verification.model_validate_json(verdict.read_text()), load.stand_in_s)
        noted: Any = Noted(engine, folder / "direct.jsonl")
        began = time.monotonic()
        list(pool.map(lambda each: verify_persistently(noted, each.source, each.problem, settings), work))
        return time.monotonic() - began


def recorded_verdict(backend: str, folder: Path) -> Path:
    """The file of a real verification, timed: the record that stand-ins answer with."""
    [work] = candidates(backend, 1)
    settings = VerifySettings(
        backend=backend, size=choose_size(None, backend, [work.problem]), rigor=Rigor.QUICK
    )
    with Engine() as engine:
        verdict = engine.verify(work.source, work.problem, settings)
    file = folder / "verdict.json"
    file.write_text(verdict.model_dump_json())
    print(f"the stand-in answers with {verdict.status} on {work.problem.id}", flush=True)
    return file


def shown(found: Sequence[dict[str, Any]]) -> str:
    """A line for each load; times in milliseconds."""
    rows = []
    for each in found:
        parts, count = each["parts"], each["count"]

        def middle(name: str, share: float, parts: Sequence[dict[str, float]] = parts) -> str:
            return f"{1e3 * percentile([part[name] for part in parts], share):.0f}"

        engine = "real" if each["stand_in_s"] is None else f"stand-in {each['stand_in_s']:g} s"
        over = [f"{1e3 * each['overhead_s'][share]:.0f}" for share in ("0.5", "0.95", "1.0")]
        cpu = [f"{1e3 * each[name] / count:.1f}" for name in ("api_cpu_s", "worker_cpu_s")]
        walls = f"{count / each['wall_s']:.1f}", f"{count / each['direct_wall_s']:.1f}"
        load = f"{each['load_average'][0]:.1f}"
        split = middle("before", 0.95), middle("after", 0.95)
        rows.append((engine, each["in_flight"], each["places"], count, *over, *split, *cpu, *walls, load))
    head = ("engine", "in flight", "places", "count", "p50", "p95", "most", "before p95", "after p95")
    return table((*head, "API ms", "worker ms", "a second", "directly", "load"), rows)


def run(loads: Sequence[Load], output: Path) -> None:
    """Measures each load, prints a table, and writes all samples."""
    found = []
    with tempfile.TemporaryDirectory(prefix="kernelproof-service-") as folder:
        stands_in = next((load for load in loads if load.stand_in_s is not None), None)
        verdict = None if stands_in is None else recorded_verdict(stands_in.backend, Path(folder))
        for load in loads:
            found.append(measured(load, None if load.stand_in_s is None else verdict))
            print(shown(found[-1:]), flush=True)
            output.parent.mkdir(parents=True, exist_ok=True)
            output.write_text(json.dumps({"overhead": found}, indent=1) + "\n")
    print(shown(found))
    print(f"written to {output}")
