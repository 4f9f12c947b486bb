"""Wall time of whole processes, printed as a table and written as JSON with the machine it was taken on."""

from __future__ import annotations

import json
import os
import platform
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

LIBRARIES = ("sqlalchemy", "alembic", "pydantic", "rich", "typer")


@dataclass(frozen=True)
class Timing:
    """Wall seconds of one command, every run."""

    name: str
    command: tuple[str, ...]
    seconds: tuple[float, ...]

    @property
    def median(self) -> float:
        return statistics.median(self.seconds)


def kernelproof(*arguments: str) -> tuple[str, ...]:
    """The installed command of the Python that runs this."""
    return str(Path(sys.executable).with_name("kernelproof")), *arguments


def time_process(name: str, command: Sequence[str], runs: int) -> Timing:
    """Runs the command once unmeasured, so that the disk cache is warm, and then `runs` times.

    Raises CalledProcessError when it fails: the time of a failure says nothing.
    """
    seconds = []
    for _ in range(runs + 1):
        begun = time.perf_counter()
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        seconds.append(time.perf_counter() - begun)
    return Timing(name, tuple(command), tuple(seconds[1:]))


def print_timings(timings: Sequence[Timing]) -> None:
    """Median, fastest and slowest in milliseconds."""
    width = max(len(timing.name) for timing in timings)
    print(f"{'process':{width}}  median ms  fastest  slowest  runs")
    for timing in timings:
        low, high = min(timing.seconds), max(timing.seconds)
        figures = f"{timing.median * 1e3:9.0f}  {low * 1e3:7.0f}  {high * 1e3:7.0f}  {len(timing.seconds):4}"
        print(f"{timing.name:{width}}  {figures}")


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
        "load_average": os.getloadavg(),
        "sqlite": sqlite3.sqlite_version,
        **{name: version(name) for name in LIBRARIES},
    }
