"""Wall and processor time of whole processes, as a table and as JSON with the machine they ran on."""

from __future__ import annotations

import json
import os
import platform
import resource
import sqlite3
import statistics
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

from kernelproof.errors import SandboxError
from kernelproof.verifier.devices.discovery import gpus
from kernelproof.verifier.sandbox import probe

LIBRARIES = ("sqlalchemy", "alembic", "pydantic", "rich", "typer")


@dataclass(frozen=True)
class Timing:
    """Seconds of one command, every run."""

    name: str
    command: tuple[str, ...]
    wall_seconds: tuple[float, ...]
    cpu_seconds: tuple[float, ...]
    """User and system time: what is left of the wall time when nothing else wants the cores."""


def kernelproof(*arguments: str) -> tuple[str, ...]:
    """The installed command of the Python that runs this."""
    return str(Path(sys.executable).with_name("kernelproof")), *arguments


def time_process(name: str, command: Sequence[str], runs: int) -> Timing:
    """Runs the command once unmeasured, so that the disk cache is warm, and then `runs` times.

    Raises CalledProcessError when it fails: the time of a failure says nothing.
    """
    wall, cpu = [], []
    for _ in range(runs + 1):
        begun, before = time.perf_counter(), _children_cpu_seconds()
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        wall.append(time.perf_counter() - begun)
        cpu.append(_children_cpu_seconds() - before)
    return Timing(name, tuple(command), tuple(wall[1:]), tuple(cpu[1:]))


def _children_cpu_seconds() -> float:
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def print_timings(timings: Sequence[Timing]) -> None:
    """Median, fastest and slowest wall time and median processor time, in milliseconds."""
    width = max(len(timing.name) for timing in timings)
    print(f"{'process':{width}}  median ms  fastest  slowest  CPU ms  runs")
    for t in timings:
        wall = statistics.median(t.wall_seconds), min(t.wall_seconds), max(t.wall_seconds)
        median, low, high = (1e3 * seconds for seconds in wall)
        cpu = 1e3 * statistics.median(t.cpu_seconds)
        figures = f"{median:9.0f}  {low:7.0f}  {high:7.0f}  {cpu:6.0f}  {len(t.wall_seconds):4}"
        print(f"{t.name:{width}}  {figures}")


def write_result(path: Path, timings: Sequence[Timing], **facts: Any) -> None:
    """All samples, the facts given and the environment, as JSON."""
    path.parent.mkdir(parents=True, exist_ok=True)
    result = {"timings": [asdict(timing) for timing in timings], **facts, "environment": environment()}
    path.write_text(json.dumps(result, indent=2) + "\n")
    print(f"written to {path}")


def environment() -> dict[str, Any]:
    """What decides about these times, the load of the machine included."""
    return {
        "python": platform.python_version(),
        "platform": platform.platform(),
        "cores": len(os.sched_getaffinity(0)),
        "gpus": [f"{gpu.name} {gpu.uuid}" for gpu in gpus()],
        "sandbox": _tier(),
        "load_average": os.getloadavg(),
        "sqlite": sqlite3.sqlite_version,
        **{name: version(name) for name in LIBRARIES},
    }


def _tier() -> str | None:
    """The sandbox's, or None where there is none: some benchmarks need none."""
    try:
        return probe().tier
    except SandboxError:
        return None
