"""The time that the service adds to its engine's, beside the same engine called directly in the same run.

An evaluation's latency is divided into three parts:

- the wait for a free slot of the engine: until, of the calls that began before it, one more has ended than
  the engine has slots too few;
- the engine's own time, as it is noted around the call;
- the rest, which is the overhead: HTTP, the queue, the worker's look into it, storing and answering.

Callers that wait for slots are the engine's own queue, whoever calls it, and no overhead. So the load has to
be one that the engine sustains: slots over seconds, evaluations a second. As many callers then call the same
engine directly, without the service, and the same parts are taken of that.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import tempfile
import threading
import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from benchmarks.candidates import Work, candidates
from benchmarks.evidence import table
from benchmarks.service.engines import Noted, StandIn, Verifies, read_notes
from benchmarks.service.load import Answered, send_all
from benchmarks.service.parts import parts_of, percentile
from benchmarks.service.running import cpu_seconds, service, working
from kernelproof.hashing import sha256_text
from kernelproof.jobs import Job, Judge
from kernelproof.runs.sizes import choose_size
from kernelproof.types import Rigor, Verification, VerifySettings
from kernelproof.verifier.engine.engine import Engine

ARRIVAL_S = 0.05
"""Between two callers, on average, when they begin."""
MIB = 1 << 20
SHARES = (0.5, 0.95, 0.99, 1.0)


@dataclass(frozen=True)
class Load:
    """One measurement's settings."""

    backend: str
    count: int
    in_flight: int
    places: int
    """Evaluations that the worker has at once."""
    slots: int
    """Calls that the engine has at once."""
    stand_in_s: float | None
    """Seconds of the stand-in, on average; None: the real engine."""
    together: bool
    """Whether all callers begin at the same moment, and not one after the other."""

    @property
    def delays(self) -> list[float]:
        """Seconds after which each of the callers begins."""
        chance, spread = random.Random(1), 0.0 if self.together else max(1.0, ARRIVAL_S * self.in_flight)
        return [chance.uniform(0.0, spread) for _ in range(self.in_flight)]


def measured(load: Load, verdict: Path | None) -> dict[str, Any]:
    """The figures of one load. `verdict`: the file that the stand-in answers with."""
    work = candidates(load.backend, load.count)
    settings = {"size": choose_size(None, load.backend, [each.problem for each in work])}
    bodies = [{"problem": each.problem.id, "source": each.source, "settings": settings} for each in work]
    keys = [sha256_text(each.source) for each in work]
    options = ["--slots", str(load.slots)]
    if verdict is not None:
        options += ["--stand-in", str(verdict), "--seconds", str(load.stand_in_s)]
    with tempfile.TemporaryDirectory(prefix="kernelproof-service-") as folder:
        with (
            service(Path(folder), load.backend) as running,
            working(running, load.places, options) as worker,
        ):
            processes = running.api, worker
            before, began = [cpu_seconds(each) for each in processes], time.monotonic()
            first = [each.memory_info().rss for each in processes]
            answered = asyncio.run(send_all(running.host, running.port, bodies, load.in_flight, load.delays))
            wall, after = time.monotonic() - began, [cpu_seconds(each) for each in processes]
            resident = [each.memory_info().rss for each in processes]
            loads = [os.getloadavg()]
            parts = parts_of(answered, read_notes(running.notes), keys, load.slots)
        called, direct_wall = directly(work, load, settings["size"], verdict, Path(folder))
        loads.append(os.getloadavg())
        direct = parts_of(called, read_notes(Path(folder, DIRECT)), keys, load.slots)
    return {
        **asdict(load),
        "load_average": loads[0],
        "direct_load_average": loads[1],
        "wall_s": wall,
        "direct_wall_s": direct_wall,
        "api_cpu_s": after[0] - before[0],
        "worker_cpu_s": after[1] - before[1],
        "api_rss": [first[0], resident[0]],
        "worker_rss": [first[1], resident[1]],
        "parts": [asdict(each) for each in parts],
        "direct_parts": [asdict(each) for each in direct],
        "overhead_s": _shares([each.overhead for each in parts]),
        "before_s": _shares([each.before for each in parts]),
        "after_s": _shares([each.after for each in parts]),
        "direct_overhead_s": _shares([each.overhead for each in direct]),
    }


def _shares(values: Sequence[float]) -> dict[str, float]:
    return {str(share): percentile(values, share) for share in SHARES}


DIRECT = "direct.jsonl"


def directly(
    work: Sequence[Work], load: Load, size: str, verdict: Path | None, folder: Path
) -> tuple[list[Answered], float]:
    """Calls the same engine for the same candidates, from as many threads as there are callers, which begin
    as those do; and the wall seconds of all."""
    settings = VerifySettings(backend=load.backend, size=size, rigor=Rigor.QUICK)
    rest, turn, found = iter(enumerate(work)), threading.Lock(), list[Answered]()
    with ExitStack() as stack:
        engine: Verifies
        if verdict is None or load.stand_in_s is None:
            engine = stack.enter_context(Engine(many=True))
        else:
            engine = StandIn(Verification.model_validate_json(verdict.read_text()), load.stand_in_s)
        noted: Any = Noted(engine, folder / DIRECT, load.slots)

        def caller(delay: float) -> None:
            time.sleep(delay)
            while True:
                with turn:
                    drawn = next(rest, None)
                if drawn is None:
                    return
                number, each = drawn
                sent = time.time()
                Judge(noted).judge(Job.of_text(each.source, each.problem, settings))
                found.append(Answered(number, sent, time.time(), {}))

        began = time.monotonic()
        threads = [threading.Thread(target=caller, args=(delay,)) for delay in load.delays]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return found, time.monotonic() - began


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
    """A line for each load; times in milliseconds, of the middle and of the 95th percentile."""
    rows = []
    for each in found:
        count = each["count"]
        engine = "real" if each["stand_in_s"] is None else f"stand-in {each['stand_in_s']:g} s"
        parts = [
            f"{1e3 * each[name][share]:.1f}"
            for name in ("overhead_s", "before_s", "after_s", "direct_overhead_s")
            for share in ("0.5", "0.95")
        ]
        cpu = [f"{1e3 * each[name] / count:.1f}" for name in ("api_cpu_s", "worker_cpu_s")]
        memory = ["{:.0f} to {:.0f}".format(*(b / MIB for b in each[k])) for k in ("api_rss", "worker_rss")]
        walls = f"{count / each['wall_s']:.1f}", f"{count / each['direct_wall_s']:.1f}"
        loads = [f"{each[name][0]:.1f}" for name in ("load_average", "direct_load_average")]
        rows.append((engine, each["in_flight"], each["slots"], count, *walls, *loads, *parts, *cpu, *memory))
    head = ("engine", "in flight", "slots", "count", "a second", "directly", "load", "directly")
    times = ("overhead p50", "p95", "before p50", "p95", "after p50", "p95", "directly p50", "p95")
    names = (*head, *times, "HTTP ms", "worker ms", "HTTP MiB", "worker MiB")
    return "\n\n".join(table(("figure", "value"), list(zip(names, row, strict=True))) for row in rows)


def run(loads: Sequence[Load], output: Path) -> None:
    """Measures each load, prints a table, and writes all samples."""
    found = []
    with tempfile.TemporaryDirectory(prefix="kernelproof-service-") as folder:
        stands_in = next((load for load in loads if load.stand_in_s is not None), None)
        verdict = None if stands_in is None else recorded_verdict(stands_in.backend, Path(folder))
        for load in loads:
            found.append(measured(load, None if load.stand_in_s is None else verdict))
            print(shown(found[-1:]), flush=True)
            print(_said(found[-1]), flush=True)
            output.parent.mkdir(parents=True, exist_ok=True)
            output.write_text(json.dumps({"overhead": found}, indent=1) + "\n")
    print(f"written to {output}")


def _said(found: dict[str, Any]) -> str:
    through, direct = (1e3 * found[name]["0.95"] for name in ("overhead_s", "direct_overhead_s"))
    return (
        f"{found['in_flight']} in flight: beside the engine and the wait for it, {through:.1f} ms at the "
        f"95th percentile through the service and {direct:.1f} ms directly, {through - direct:.1f} ms more"
    )
