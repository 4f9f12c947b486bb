"""A long queue: how long callers and operators wait beside it, and how fast a worker takes from it.

Everything goes through HTTP. First the queue is filled while nobody takes from it. Then each request is timed
in turn, and at last a worker with a stand-in that takes no time empties it for some seconds.
"""

from __future__ import annotations

import asyncio
import json
import os
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.candidates import Work, candidates, distinct
from benchmarks.evidence import table
from benchmarks.service.load import Connection
from benchmarks.service.overhead import recorded_verdict
from benchmarks.service.parts import percentile
from benchmarks.service.running import Running, service, working
from kernelproof.runs.sizes import choose_size

BATCH = 1024
TIMED = 50
"""Requests of each kind that are timed."""


@dataclass(frozen=True)
class Timed:
    """One kind of request."""

    name: str
    seconds: tuple[float, ...]


def run(backend: str, length: int, seconds: float, output: Path) -> None:
    """Fills a queue, times requests beside it, and empties it for so many seconds. Prints, writes JSON."""
    with tempfile.TemporaryDirectory(prefix="kernelproof-queue-") as folder:
        verdict = recorded_verdict(backend, Path(folder))
        with service(Path(folder, "workspace"), backend) as running:
            found = asyncio.run(_measured(running, candidates(backend, 12), backend, length))
            options = ["--stand-in", str(verdict), "--seconds", "0"]
            with working(running, 18, options):
                found |= asyncio.run(_emptied(running, seconds))
    found["load_average"] = os.getloadavg()
    rows = [
        (each.name, *(f"{1e3 * percentile(each.seconds, share):.1f}" for share in (0.5, 0.95, 1.0)))
        for each in found["timed"]
    ]
    print(f"{found['length']} queued in {found['filled_s']:.0f} s; load {found['load_average'][0]:.1f}")
    print(table(("request", "p50 ms", "p95 ms", "most ms"), rows))
    print(f"a worker ended {found['ended']} in {found['emptied_s']:.0f} s")
    output.parent.mkdir(parents=True, exist_ok=True)
    output.write_text(
        json.dumps({**found, "timed": [vars(each) for each in found["timed"]]}, indent=1) + "\n"
    )
    print(f"written to {output}")


async def _measured(running: Running, work: Sequence[Work], backend: str, length: int) -> dict[str, Any]:
    connection = Connection(running.host, running.port)
    size = choose_size(None, backend, [each.problem for each in work])

    def body(number: int) -> dict[str, Any]:
        each = work[number % len(work)]
        source = distinct(each.source, number)
        return {"problem": each.problem.id, "source": source, "settings": {"size": size}}

    began, number = time.monotonic(), ""
    for start in range(0, length, BATCH):
        batch = [body(place) for place in range(start, min(length, start + BATCH))]
        said = await _ok(connection, "POST", "/v1/evaluations", {"evaluations": batch})
        number = said["evaluations"][0]["id"]
    filled = time.monotonic() - began
    one = iter(range(length, length + TIMED))
    timed = [
        await _timed(connection, "send one", lambda: ("POST", "/v1/evaluations", body(next(one)))),
        await _timed(connection, "ask for one", lambda: ("GET", f"/v1/evaluations/{number}", None)),
        await _timed(connection, "the queue's counts", lambda: ("GET", "/v1/queue", None)),
    ]
    await connection.close()
    return {"length": length, "filled_s": filled, "timed": timed}


async def _timed(connection: Connection, name: str, request: Any) -> Timed:
    seconds = []
    for _ in range(TIMED):
        asked = request()
        began = time.monotonic()
        await _ok(connection, *asked)
        seconds.append(time.monotonic() - began)
    return Timed(name, tuple(seconds))


async def _emptied(running: Running, seconds: float) -> dict[str, Any]:
    connection = Connection(running.host, running.port)

    async def done() -> int:
        states = (await _ok(connection, "GET", "/v1/queue", None))["states"]
        return int(states["done"])

    while not await done():  # the worker starts
        await asyncio.sleep(0.1)
    before, began = await done(), time.monotonic()
    await asyncio.sleep(seconds)
    ended, took = await done() - before, time.monotonic() - began
    await connection.close()
    return {"ended": ended, "emptied_s": took}


async def _ok(connection: Connection, method: str, path: str, body: Any) -> Any:
    raw = b"" if body is None else json.dumps(body).encode()
    status, said = await connection.ask(method, path, raw)
    assert status < 300, (status, said)
    return json.loads(said)
