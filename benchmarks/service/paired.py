"""Candidates an hour through the service and through the engine of one process, in turn.

Each round takes its own part of the recorded answers, made distinct, and verifies it twice: by a batch of the
local engine, and by the service with one worker, the one that is first changing by round. Each has an empty
cache of builds; a first candidate, which makes what is needed once, is not counted.
"""

from __future__ import annotations

import json
import math
import os
import statistics
import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from benchmarks.candidates import Work, candidates
from benchmarks.evidence import table
from benchmarks.service.running import service, working
from kernelproof.client import Candidate, Client
from kernelproof.jobs import Job, Judge
from kernelproof.jobs.judge import places
from kernelproof.runs.sizes import choose_size
from kernelproof.types import Rigor, VerifySettings
from kernelproof.verifier.engine.engine import Engine

T95 = {1: 12.71, 2: 4.30, 3: 3.18, 4: 2.78, 5: 2.57, 6: 2.45, 7: 2.36, 8: 2.31, 9: 2.26}
"""Quantiles of Student's distribution, by degrees of freedom."""


def run(backend: str, rounds: int, count: int, output: Path) -> None:
    """So many rounds of `count` candidates. Prints each, and the ratio with its interval; writes JSON."""
    work = candidates(backend, rounds * (count + 1))
    size = choose_size(None, backend, [each.problem for each in work])
    found: list[dict[str, Any]] = []
    for number in range(rounds):
        part = work[number * (count + 1) : (number + 1) * (count + 1)]
        ways = [("local", _locally), ("service", _served)]
        seconds: dict[str, Any] = {}
        for name, way in ways if number % 2 == 0 else reversed(ways):
            with tempfile.TemporaryDirectory(prefix="kernelproof-paired-") as folder:
                seconds[name], seconds[f"{name}_statuses"] = way(part, backend, size, Path(folder))
        found.append({**seconds, "count": count, "load_average": os.getloadavg()})
        print(_shown(found[-1:]), flush=True)
        output.parent.mkdir(parents=True, exist_ok=True)
        output.write_text(json.dumps({"backend": backend, "rounds": found}, indent=1) + "\n")
    print(_shown(found))
    print(_ratio(found))
    print(f"written to {output}")


def _locally(part: Sequence[Work], backend: str, size: str, folder: Path) -> tuple[float, list[str]]:
    settings = VerifySettings(backend=backend, size=size, rigor=Rigor.QUICK)
    with Engine(folder, many=True) as engine, ThreadPoolExecutor(places()) as pool:

        def one(each: Work) -> str:
            return str(Judge(engine).judge(Job.of_text(each.source, each.problem, settings)).status)

        one(part[0])
        began = time.monotonic()
        statuses = list(pool.map(one, part[1:]))
        return time.monotonic() - began, statuses


def _served(part: Sequence[Work], backend: str, size: str, folder: Path) -> tuple[float, list[str]]:
    bodies = [Candidate(each.source, each.problem.id, settings={"size": size}) for each in part]
    cache = {"KERNELPROOF_CACHE": str(folder / "cache")}
    with (
        service(folder / "workspace", backend) as running,
        working(running, places(), more=cache),
        Client(f"http://{running.host}:{running.port}") as client,
    ):
        client.evaluate(bodies[0])
        began = time.monotonic()
        ended = client.evaluate_many(bodies[1:])
        return time.monotonic() - began, [str(each.status) for each in ended]


def _shown(found: Sequence[dict[str, Any]]) -> str:
    rows = []
    for each in found:
        rates = (each["count"] / each[name] * 3600 for name in ("local", "service"))
        same = sum(a == b for a, b in zip(each["local_statuses"], each["service_statuses"], strict=True))
        share = f"{each['local'] / each['service']:.3f}"
        rows.append((*(f"{rate:.0f}" for rate in rates), share, same, f"{each['load_average'][0]:.1f}"))
    return table(("local an hour", "service an hour", "ratio", "same status", "load"), rows)


def _ratio(found: Sequence[dict[str, Any]]) -> str:
    """The geometric mean of the rounds' ratios, with Student's interval where there are several."""
    logs = [math.log(each["local"] / each["service"]) for each in found]
    middle = statistics.fmean(logs)
    said = f"the service reaches {math.exp(middle):.3f} of the local engine's candidates an hour"
    if len(logs) < 2:
        return f"{said} in one round"
    half = T95.get(len(logs) - 1, 2.0) * statistics.stdev(logs) / math.sqrt(len(logs))
    low, high = math.exp(middle - half), math.exp(middle + half)
    return f"{said} (95 % interval {low:.3f} to {high:.3f}, {len(logs)} rounds)"
