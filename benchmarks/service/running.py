"""The service and a worker, each a process of its own, over an empty database."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import psutil


@dataclass(frozen=True)
class Running:
    """The processes of a service."""

    host: str
    port: int
    api: psutil.Process
    worker: psutil.Process
    database: Path
    notes: Path
    """Where the worker notes the calls of its engine."""

    def cpu_seconds(self) -> tuple[float, float]:
        """User and system time so far: of the HTTP process, of the worker."""
        return _cpu(self.api), _cpu(self.worker)


def _cpu(process: psutil.Process) -> float:
    times = process.cpu_times()
    return float(times.user + times.system)


@contextmanager
def service(folder: Path, backend: str, places: int, worker: Sequence[str] = ()) -> Iterator[Running]:
    """A service in `folder` that takes untimed work of one backend. `worker`: options of its worker."""
    database, notes = folder / "db" / "attempts.sqlite", folder / "notes.jsonl"
    notes.parent.mkdir(parents=True, exist_ok=True)
    notes.touch()
    command = [sys.executable, "-m", "kernelproof", "serve-api", "--no-worker", "--workspace", str(folder)]
    command += ["--port", "0", "--backend", backend, "--rigor", "quick", "--max-queue", "200000"]
    environment = {name: value for name, value in os.environ.items() if name != "KERNELPROOF_DB"}
    api = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment)
    started = [api]
    try:
        assert api.stdout is not None
        line = api.stdout.readline()
        found = re.match(r"http://([\d.]+):(\d+) serves", line)
        assert found is not None, line
        command = [sys.executable, "-m", "benchmarks.service.worker", str(folder), str(places), str(notes)]
        command += worker
        works = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment)
        started.append(works)
        assert works.stdout is not None
        line = works.stdout.readline()
        assert line.startswith("worker for"), line
        processes = psutil.Process(api.pid), psutil.Process(works.pid)
        yield Running(found[1], int(found[2]), *processes, database, notes)
    finally:
        for process in reversed(started):
            process.terminate()
        for process in started:
            process.wait(30)
