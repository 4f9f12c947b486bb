"""What a process costs beside its timed blocks, on one GPU and on all of a host at once:
``python -m benchmarks.neighbours``.

A process that makes a context, maps memory or ends on one GPU takes locks of the driver that processes on the
other GPUs want as well. For 1, 2, 3 ... GPUs, a process for each of them goes round and round through what a
verification does outside its timed blocks, two contestants at a time: a process comes up, makes its context,
maps its slots, loads the problem, has a call traced, is held still and let go on, and ends. Without a GPU it
is one process, on the CPU. Prints medians and ninth deciles, and writes JSON.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import torch

from benchmarks.evidence import table
from benchmarks.measuring import environment
from kernelproof.problems import open_suite
from kernelproof.runs.sizes import choose_size
from kernelproof.types import VerifySettings
from kernelproof.verifier.contestant.loop import outputs_of
from kernelproof.verifier.contestant.main import configure_torch
from kernelproof.verifier.devices.discovery import VISIBLE, default_backend, device_for, gpus
from kernelproof.verifier.referee import sides
from kernelproof.verifier.referee.inputs.problem import LoadedProblem
from kernelproof.verifier.workers.client import Contestant
from kernelproof.verifier.workers.shared_memory import SharedMemory, lay_out

STEPS = ("up", "context", "slots", "map", "load", "trace", "pause", "end", "free")
PROBLEM = "level1/2"
SLOTS = 4
PAUSES = 20
Seconds = dict[str, list[float]]


class Rounds:
    """Goes through it again and again, and keeps the seconds of every step."""

    def __init__(self) -> None:
        backend = default_backend()
        problem = open_suite().find(PROBLEM)
        self.seconds: Seconds = defaultdict(list)
        self._settings = VerifySettings(backend=backend, size=choose_size(None, backend, [problem]))
        self._device = torch.device(device_for(backend))
        self._loaded = LoadedProblem(problem, self._settings.size)
        configure_torch(self._settings.threads)

    def run(self, seconds: float) -> Seconds:
        """For so long, and one before that does not count."""
        self._round()
        self.seconds.clear()
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            self._round()
        return self.seconds

    def _round(self) -> None:
        memory = SharedMemory(self._device)
        arguments = self._loaded.draw(0, self._device)
        sample = self._loaded.run(self._loaded.construct(0, self._device), arguments, 0)
        with self._step("slots"):
            slots = lay_out(memory, arguments, outputs_of(sample, self._device), SLOTS)
        slots[0].fill(arguments)
        call = {"op": "call", "seed": 0, "watched": "profiled", "timed_next": False, **slots[0].message()}
        with ThreadPoolExecutor(2) as pool:
            for done in [pool.submit(self._live, memory, call) for _ in range(2)]:
                done.result()
        with self._step("free"):
            memory.close()

    def _live(self, memory: SharedMemory, call: dict[str, object]) -> None:
        """One contestant from its start to its end."""
        with self._step("up"):
            contestant = Contestant(
                sides.no_builds, gpus=sides.gpus(self._device), memory_bytes=self._settings.memory_bytes
            )
            contestant.allow_memory(self._settings.memory_bytes + memory.host_bytes)
            contestant.wait_ready()
        try:
            ask = contestant.ask
            with self._step("context"):
                ask(sides.hello(self._settings, self._device), seconds=60)
            message, descriptors = memory.announce(*sides.CANDIDATE_ARENAS)
            with self._step("map"):
                ask(message, seconds=60, fds=descriptors)
            with self._step("load"):
                ask({"op": "load", "source": self._loaded.sized_source(), "seed": 0}, seconds=60)
                arguments = sides.init_arguments(self._loaded)
                ask({"op": "construct", "class": "Model", "arguments": arguments, "seed": 0}, seconds=60)
            with self._step("trace"):
                ask(call, seconds=60)
            for _ in range(PAUSES):
                with self._step("pause"):
                    contestant.pause()
                    contestant.resume()
        finally:
            with self._step("end"):
                contestant.close()

    @contextmanager
    def _step(self, name: str) -> Iterator[None]:
        began = time.perf_counter()
        yield
        self.seconds[name].append(time.perf_counter() - began)


def at_once(devices: Sequence[str | None], seconds: float) -> Seconds:
    """The seconds of a process for each device, together. Raises CalledProcessError when one fails."""
    command = [sys.executable, "-m", "benchmarks.neighbours", "--one", "--seconds", str(seconds)]

    def one(device: str | None) -> Seconds:
        visible = {} if device is None else {VISIBLE: device}
        done = subprocess.run(command, check=True, stdout=subprocess.PIPE, env=os.environ | visible)
        found: Seconds = json.loads(done.stdout.splitlines()[-1])
        return found

    together: Seconds = defaultdict(list)
    with ThreadPoolExecutor(len(devices)) as pool:
        for found in pool.map(one, devices):
            for step, each in found.items():
                together[step] += each
    return together


def shown(found: Sequence[Seconds]) -> str:
    """A line for each step: milliseconds, median and ninth decile, for each number of GPUs."""

    def cell(each: list[float]) -> str:
        return f"{1e3 * np.median(each):.1f} {1e3 * np.quantile(each, 0.9):.1f}"

    rows = [(step, *(cell(one[step]) for one in found)) for step in STEPS]
    return table(("ms: median, 90 %", *(f"{count} at once" for count in range(1, len(found) + 1))), rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=15.0, help="for each number of GPUs")
    parser.add_argument("--output", type=Path, default=Path("generated/benchmarks/neighbours.json"))
    parser.add_argument("--one", action="store_true", help="the first GPU alone, or the CPU; prints JSON")
    options = parser.parse_args()
    if options.one:
        print(json.dumps(Rounds().run(options.seconds)))
        return
    devices: list[str | None] = [gpu.uuid for gpu in gpus()] or [None]
    found = [at_once(devices[:count], options.seconds) for count in range(1, len(devices) + 1)]
    print(shown(found))
    options.output.parent.mkdir(parents=True, exist_ok=True)
    result = {"seconds": found, "environment": environment()}
    options.output.write_text(json.dumps(result, indent=1) + "\n")
    print(f"written to {options.output}")


if __name__ == "__main__":
    main()
