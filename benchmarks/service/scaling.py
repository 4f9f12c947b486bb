"""Candidates an hour through the service with one judge and with more, each on a GPU of its own.

Each turn starts a service and so many judges, gives each judge the same number of CPU cores, verifies one
candidate for each judge, and then takes the time of the rest. The cache holds what the first turn's first
candidates made, which is needed once, and no other builds. Every turn verifies the same candidates for each
judge, each copy made distinct: other candidates would take another time. `--judges 1 2 1 2` makes two rounds.
"""

from __future__ import annotations

import json
import os
import shutil
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.candidates import candidates, distinct
from benchmarks.evidence import table
from benchmarks.service.running import launched, service
from kernelproof.client import Candidate, Client
from kernelproof.runs.sizes import choose_size
from kernelproof.verifier.devices.discovery import gpus


def run(backend: str, judges: Sequence[int], count: int, cores: int, output: Path) -> None:
    """Turns of `count` candidates for each judge, on `cores` CPU cores for each. Prints and writes JSON.

    Raises SystemExit when the machine has too few cores or GPUs.
    """
    available = sorted(os.sched_getaffinity(0))
    if max(judges) * cores > len(available):
        raise SystemExit(f"{max(judges)} judges of {cores} cores each need more than {len(available)} cores")
    if max(judges) > max(1, len(gpus())):
        raise SystemExit(f"{max(judges)} judges need so many GPUs, and here are {len(gpus())}")
    found: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory(prefix="kernelproof-scaling-") as place:
        for turn, number in enumerate(judges):
            folder = Path(place, str(turn))
            found.append(_turn(backend, number, count, available[: number * cores], folder))
            print(_shown(found[-1:], found[0]), flush=True)
            output.parent.mkdir(parents=True, exist_ok=True)
            output.write_text(
                json.dumps({"backend": backend, "cores": cores, "turns": found}, indent=1) + "\n"
            )
    print(_shown(found, found[0]))
    print(f"written to {output}")


def _turn(backend: str, judges: int, count: int, cores: Sequence[int], folder: Path) -> dict[str, Any]:
    work = candidates(backend, count + 1)
    size = choose_size(None, backend, [each.problem for each in work])
    bodies = [
        Candidate(distinct(each.source, copy), each.problem.id, settings={"size": size})
        for each in work
        for copy in range(judges)
    ]
    made, cache = folder.parent / "made", folder.parent / "cache"  # one place: builds know where they lie
    shutil.rmtree(cache, ignore_errors=True)
    if made.exists():
        shutil.copytree(made, cache, symlinks=True)
    with (
        service(folder / "workspace", backend) as running,
        launched(running, judges, cores, {"KERNELPROOF_CACHE": str(cache)}),
        Client(f"http://{running.host}:{running.port}") as client,
    ):
        client.evaluate_many(bodies[:judges])
        if not made.exists():
            shutil.copytree(cache, made, symlinks=True)
        began = time.monotonic()
        ended = client.evaluate_many(bodies[judges:])
        seconds = time.monotonic() - began
    statuses = Counter(str(each.status) for each in ended)
    return {
        "judges": judges,
        "count": len(ended),
        "seconds": seconds,
        "statuses": statuses,
        "load_average": os.getloadavg(),
    }


def _rate(turn: dict[str, Any]) -> float:
    return float(turn["count"] / turn["seconds"] * 3600)


def _shown(turns: Sequence[dict[str, Any]], first: dict[str, Any]) -> str:
    rows = []
    for turn in turns:
        times = _rate(turn) / _rate(first)
        statuses = ", ".join(f"{number} {status}" for status, number in sorted(turn["statuses"].items()))
        numbers = (
            turn["judges"],
            turn["count"],
            f"{turn['seconds']:.1f}",
            f"{_rate(turn):.0f}",
            f"{times:.2f}",
        )
        rows.append((*numbers, statuses))
    return table(("judges", "candidates", "seconds", "an hour", "times the first turn", "statuses"), rows)
