"""The memory of the HTTP process and of the worker over many evaluations, beside callers that never read."""

from __future__ import annotations

import asyncio
import json
import os
import tempfile
import time
from pathlib import Path
from typing import Any

from benchmarks.candidates import candidates
from benchmarks.evidence import table
from benchmarks.service.load import send_all
from benchmarks.service.overhead import recorded_verdict
from benchmarks.service.running import Running, service, working
from kernelproof.runs.sizes import choose_size

EVERY_S = 2.0
MIB = 1 << 20


def run(backend: str, in_flight: int, count: int, silent: int, output: Path) -> None:
    """Samples resident memory while `count` evaluations pass. Prints a table, writes JSON.

    `silent`: connections that ask for the figures of Prometheus again and again, and never read an answer.
    """
    work = candidates(backend, count)
    settings = {"size": choose_size(None, backend, [each.problem for each in work])}
    bodies = [{"problem": each.problem.id, "source": each.source, "settings": settings} for each in work]
    with tempfile.TemporaryDirectory(prefix="kernelproof-memory-") as folder:
        verdict = recorded_verdict(backend, Path(folder))
        options = ["--stand-in", str(verdict), "--seconds", "0.2"]
        with (
            service(Path(folder, "workspace"), backend) as running,
            working(running, 18, options) as worker,
        ):
            moments = asyncio.run(_watched(running, worker, bodies, in_flight, silent))
    result = {"in_flight": in_flight, "count": count, "silent": silent, "moments": moments}
    result["load_average"] = os.getloadavg()
    shown = moments[:: max(1, len(moments) // 12)] + moments[-1:]
    rows = [(f"{at:.0f}", f"{api / MIB:.0f}", f"{own / MIB:.0f}") for at, api, own in shown]
    print(table(("s", "HTTP MiB", "worker MiB"), rows))
    output.parent.mkdir(parents=True, exist_ok=True)
    output.write_text(json.dumps(result, indent=1) + "\n")
    print(f"written to {output}")


async def _watched(
    running: Running, worker: Any, bodies: list[dict[str, Any]], in_flight: int, silent: int
) -> list[tuple[float, int, int]]:
    """Seconds, and the resident bytes of both processes."""
    moments: list[tuple[float, int, int]] = []
    began = time.monotonic()

    async def watch() -> None:
        while True:
            resident = running.api.memory_info().rss, worker.memory_info().rss
            moments.append((time.monotonic() - began, *resident))
            await asyncio.sleep(EVERY_S)

    async def never_read() -> None:
        _, writer = await asyncio.open_connection(running.host, running.port, limit=1)
        while True:
            writer.write(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n" * 100)
            await writer.drain()

    others = [asyncio.create_task(never_read()) for _ in range(silent)]
    others.append(asyncio.create_task(watch()))
    await send_all(running.host, running.port, bodies, in_flight, [0.0] * in_flight)
    for other in others:
        other.cancel()
    await asyncio.gather(*others, return_exceptions=True)
    return moments
