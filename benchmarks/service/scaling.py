"""Candidates an hour through the service with one judge and with more, each on a GPU of its own.

Each turn starts a service and so many judges, gives each judge the same number of CPU cores and its first
candidates, and then takes the time of the others. Every turn verifies the same candidates for each judge,
each copy made distinct: other candidates would take another time. `--judges 1 2 1 2` makes two rounds.

A turn of most judges comes first, which compiles. Its rate counts the time before any GPU has work. All
others take their builds from the cache, as judges do in a long queue: compilers are ahead.
"""

from __future__ import annotations

import json
import os
import sqlite3
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

from benchmarks.candidates import Work, candidates, distinct
from benchmarks.evidence import table
from benchmarks.service.running import launched, service
from kernelproof.client import Candidate, Client
from kernelproof.runs.sizes import choose_size
from kernelproof.verifier.devices.discovery import gpus

MOST_FIRST = 60
"""Candidates after which every judge must have had one."""
FIRST = 3
"""Candidates that a judge has before. In a queue some of the processes in reserve have a context already."""
READY_S = 3
"""Processes in reserve come up in this time. Beside a queue they are up."""


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
        for turn, number in enumerate((max(judges), *judges)):
            folder = Path(place, str(turn))
            found.append(_turn(backend, number, count, available[: number * cores], folder))
            print(_shown(found[-1:], found[min(turn, 1)]), flush=True)
            output.parent.mkdir(parents=True, exist_ok=True)
            told = {"backend": backend, "cores": cores, "compiling": found[0], "turns": found[1:]}
            output.write_text(json.dumps(told, indent=1) + "\n")
    print(_shown(found[1:], found[1]))
    print(f"written to {output}")


def _turn(backend: str, judges: int, count: int, cores: Sequence[int], folder: Path) -> dict[str, Any]:
    work = candidates(backend, count + 1)
    size = choose_size(None, backend, [each.problem for each in work])
    bodies = [_candidate(each, copy, size) for each in work[1:] for copy in range(judges)]
    with (
        service(folder / "workspace", backend) as running,
        launched(running, judges, cores, {"KERNELPROOF_CACHE": str(folder.parent / "cache")}),
        Client(f"http://{running.host}:{running.port}") as client,
    ):
        each = FIRST * judges
        for first in range(0, MOST_FIRST, each):  # a judge that is not up yet leaves them to the others
            copies = range(first, first + each)
            client.evaluate_many([_candidate(work[0], copy, size) for copy in copies])
            if _judged_on(running.database) == judges:
                break
        else:
            raise SystemExit(f"{MOST_FIRST} candidates were judged, and not by every judge one")
        time.sleep(READY_S)
        began = time.monotonic()
        ended = client.evaluate_many(bodies)
        seconds = time.monotonic() - began
    statuses = Counter(str(each.status) for each in ended)
    return {
        "judges": judges,
        "count": len(ended),
        "seconds": seconds,
        "statuses": statuses,
        "load_average": os.getloadavg(),
    }


def _candidate(work: Work, copy: int, size: str) -> Candidate:
    return Candidate(distinct(work.source, copy), work.problem.id, settings={"size": size})


def _judged_on(database: Path) -> int:
    """The number of devices on which candidates were judged so far."""
    with closing(sqlite3.connect(database)) as opened:
        return int(opened.execute("SELECT count(*) FROM environments").fetchone()[0])


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
