"""Many slow questions in flight, shown on a terminal: ``python -m benchmarks.in_flight``.

Starts a server on loopback (`tests/faultserver`) whose answers take 20 s each, and `kernelproof generate` on
a terminal of 120 columns. Measures the time from start to end, the memory of the command with all that it
started (their shares of common pages added up), and how long the table ever stood still. The answers hold
no code, so no candidate is judged. Measures; asserts nothing.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import psutil

from benchmarks.measuring import environment
from benchmarks.sampling import Sampler
from tests import terminal
from tests.faultserver import FaultServer, start

COLUMNS, ROWS = 120, 40
SAMPLE_S = 0.5
LONGEST_S = 3_600.0
"""Most that a run may take."""
FRAME = re.compile(rb"samples")
"""Stands once in each drawing of the table."""


class Memory(Sampler):
    """The largest sum of the proportional shares of a process and its descendants."""

    def __init__(self, pid: int) -> None:
        super().__init__()
        self._root = psutil.Process(pid)
        self.most_bytes = 0

    def _watch(self) -> None:
        while not self._over.wait(SAMPLE_S):
            with suppress(psutil.Error):
                family = [self._root, *self._root.children(recursive=True)]
                self.most_bytes = max(self.most_bytes, sum(map(_share, family)))


def _share(process: psutil.Process) -> int:
    with suppress(psutil.Error):
        return int(process.memory_full_info().pss)
    return 0


@dataclass
class Seen:
    """The output to a terminal, with the time of each piece."""

    frames: list[float] = field(default_factory=list)
    """Seconds since the start, of each drawing."""
    last: bytes = b""
    """The end of what came."""

    def read(self, number: int, began: float) -> None:
        """Until the other side closes it."""
        for piece in terminal.pieces(number, LONGEST_S):
            now = time.monotonic() - began
            self.frames += [now] * len(FRAME.findall(piece))
            self.last = (self.last + piece)[-20_000:]

    @property
    def gaps(self) -> list[float]:
        """Seconds between drawings, the longest first."""
        return sorted((b - a for a, b in zip(self.frames, self.frames[1:], strict=False)), reverse=True)


def command(server: FaultServer, questions: int) -> list[str]:
    """`generate`, so many questions at once."""
    usual = [sys.executable, "-m", "kernelproof", "generate", "level1/1", "--model", "openai:slow"]
    asked = ["--samples", str(questions), "--concurrency", str(questions), "--base-url", server.url]
    return [*usual, *asked, "--no-measure"]


def measure(questions: int, seconds: float) -> dict[str, object]:
    """One run in a workspace of its own."""
    workspace = tempfile.mkdtemp(prefix="in-flight-")
    ours, theirs = terminal.opened(COLUMNS, ROWS)
    given = {"OPENAI_API_KEY": "none", "KERNELPROOF_WORKSPACE": workspace, "TERM": "xterm-256color"}
    seen = Seen()
    with start(delay_s=seconds, pieces=20) as server:
        began, load = time.monotonic(), os.getloadavg()
        process = subprocess.Popen(
            command(server, questions),
            env={**os.environ, **given},
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            start_new_session=True,
        )
        os.close(theirs)
        with Memory(process.pid) as memory:
            seen.read(ours, began)
            _, status, usage = os.wait4(process.pid, 0)
        took, counts = time.monotonic() - began, server.counts()
    shutil.rmtree(workspace, ignore_errors=True)
    if code := os.waitstatus_to_exitcode(status):
        sys.exit(f"generate ended with exit code {code}:\n{seen.last.decode(errors='replace')}")
    return {
        "questions": questions,
        "seconds_each": seconds,
        "seconds": round(took, 2),
        "cpu_seconds": round(usage.ru_utime + usage.ru_stime, 2),
        "most_in_flight": counts["most_in_flight"],
        "answered": sum(counts["answered"].values()),
        "memory_bytes": memory.most_bytes,
        "first_frame": round(seen.frames[0], 2) if seen.frames else None,
        "frames": len(seen.frames),
        "longest_gaps": [round(gap, 2) for gap in seen.gaps[:3]],
        "load_before": load[0],
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--questions", type=int, default=2_000)
    parser.add_argument("--seconds", type=float, default=20.0, help="What each answer takes.")
    parser.add_argument("--output", type=Path, default=Path("generated/benchmarks/in_flight.json"))
    options = parser.parse_args()
    found = measure(options.questions, options.seconds)
    print(
        f"{found['answered']} answers of {options.seconds:g} s each in {found['seconds']} s, at most "
        f"{found['most_in_flight']} in flight; {found['cpu_seconds']} s of processor time, "
        f"{int(str(found['memory_bytes'])) / 1e6:.0f} MB"
    )
    print(
        f"{found['frames']} drawings, the first after {found['first_frame']} s, at most "
        f"{found['longest_gaps']} s apart; load before {found['load_before']:.2f}"
    )
    options.output.parent.mkdir(parents=True, exist_ok=True)
    options.output.write_text(json.dumps({**found, "environment": environment()}, indent=2) + "\n")
    print(f"written to {options.output}")


if __name__ == "__main__":
    main()
