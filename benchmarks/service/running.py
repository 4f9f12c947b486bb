"""The service and its worker, each a process of its own, over an empty database."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import psutil

from kernelproof.verifier.devices.discovery import VISIBLE, gpus


@dataclass(frozen=True)
class Running:
    """A service without a worker."""

    host: str
    port: int
    api: psutil.Process
    folder: Path
    """Its workspace."""

    @property
    def database(self) -> Path:
        """The file of its database."""
        return self.folder / "db" / "attempts.sqlite"

    @property
    def notes(self) -> Path:
        """Where its worker notes the calls of the engine."""
        return self.folder / "notes.jsonl"


def cpu_seconds(process: psutil.Process) -> float:
    """User and system time so far."""
    times = process.cpu_times()
    return float(times.user + times.system)


@contextmanager
def service(folder: Path, backend: str) -> Iterator[Running]:
    """A service in `folder`, whose requests are of one backend unless they say so."""
    folder.mkdir(parents=True, exist_ok=True)
    command = [
        sys.executable,
        "-m",
        "kernelproof",
        "service",
        "api",
        "--no-worker",
        "--workspace",
        str(folder),
    ]
    command += ["--port", "0", "--backend", backend, "--rigor", "quick", "--max-queue", "200000"]
    with _process(command, {}) as (api, line):
        found = re.match(r"http://([\d.]+):(\d+) serves", line)
        assert found is not None, line
        yield Running(found[1], int(found[2]), api, folder)


@contextmanager
def working(
    running: Running, places: int, options: Sequence[str] = (), more: Mapping[str, str] | None = None
) -> Iterator[psutil.Process]:
    """A worker of a service. `options`: of `benchmarks.service.worker`; `more`: of its environment."""
    command = [sys.executable, "-m", "benchmarks.service.worker", str(running.folder), str(places)]
    with _process([*command, str(running.notes), *options], more or {}) as (process, line):
        assert line.startswith("worker for"), line
        yield process


@contextmanager
def launched(
    running: Running, judges: int, cores: Sequence[int], more: Mapping[str, str]
) -> Iterator[psutil.Process]:
    """`kernelproof service workers` on the first so many GPUs, or on the CPU, with these CPU cores."""
    visible = {VISIBLE: ",".join(gpu.uuid for gpu in gpus()[:judges])} if gpus() else {}
    command = ["taskset", "-c", ",".join(map(str, cores)), sys.executable, "-m", "kernelproof"]
    command += ["service", "workers", "--workspace", str(running.folder)]
    with _process(command, {**visible, **more}) as (process, line):
        assert "Ctrl-C ends" in line, line
        yield process


@contextmanager
def _process(command: Sequence[str], more: Mapping[str, str]) -> Iterator[tuple[psutil.Process, str]]:
    """A process and the first line that it printed; it is told to end with the block."""
    environment = {name: value for name, value in os.environ.items() if name != "KERNELPROOF_DB"}
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env={**environment, **more})
    try:
        assert process.stdout is not None
        yield psutil.Process(process.pid), process.stdout.readline()
    finally:
        process.terminate()
        process.wait(60)
