"""How well a run keeps its machine at work: was a candidate on the device, were the cores full of builds?

Whether a candidate is on the device follows from the engine's own stages. How busy the cores are is asked of
the system ten times a second: on a machine that others use, their work counts too.
"""

from __future__ import annotations

import os
import time
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import psutil

from benchmarks.sampling import Sampler
from benchmarks.stages import QUEUE, Span

FULL = 0.9
"""Cores count as full from this share of their time on."""
EVERY_S = 0.1
PREPARING = ("reference", "start", "load", "settling")
"""Stages at the referee in which the candidate does not compute."""
NOT_THERE = ("review", "build", QUEUE, "waiting")
"""Stages in which a candidate is not at the referee, or at one that waits for another run's measurement."""


@dataclass(frozen=True)
class Sample:
    """How busy the cores that this process may use were, between two moments of `time.monotonic`."""

    begin: float
    end: float
    busy: float


class CoresWatch(Sampler):
    """Samples the cores in a thread while its block runs."""

    def __init__(self) -> None:
        self.samples: list[Sample] = []
        super().__init__()

    def _watch(self) -> None:
        began, before = time.monotonic(), _idle_and_all()
        while not self._over.wait(EVERY_S):
            now, after = time.monotonic(), _idle_and_all()
            idle, whole = (later - earlier for later, earlier in zip(after, before, strict=True))
            self.samples.append(Sample(began, now, 1.0 - idle / whole if whole > 0 else 0.0))
            began, before = now, after


def _idle_and_all() -> tuple[float, float]:
    """Seconds that our cores were idle, and all their seconds, since the machine started."""
    every = psutil.cpu_times(percpu=True)
    ours = [every[core] for core in os.sched_getaffinity(0) if core < len(every)]
    return sum(core.idle + core.iowait for core in ours), sum(map(sum, ours))


@dataclass(frozen=True)
class Overlap:
    """Shares of the wall time, each between 0 and 1."""

    device: float
    """A candidate was on the device: tried, traced, timed or probed."""
    cores: float
    """Builds were under way and the cores full; on a CPU, whose cores are the device, while that was free."""
    neither: float
    neither_by: dict[str, float]
    """What was going on then."""
    busy: float
    """Mean share of the cores' time in use."""


def overlap_of(samples: Sequence[Sample], spans: Iterable[Span], *, device_is_cpu: bool) -> Overlap:
    """The shares over all samples. Raises ValueError when there is none: the run was over too soon."""
    if not samples:
        raise ValueError(f"nothing was sampled: the run was shorter than {EVERY_S} s")
    spans = list(spans)
    seconds, by = defaultdict[str, float](float), defaultdict[str, float](float)
    for sample in samples:
        length, middle = sample.end - sample.begin, (sample.begin + sample.end) / 2
        stages = [span.stage for span in spans if span.begin <= middle < span.end]
        device = any(stage not in (*NOT_THERE, *PREPARING) for stage in stages)
        full = "build" in stages and sample.busy >= FULL and not (device and device_is_cpu)
        seconds["wall"] += length
        seconds["busy"] += length * sample.busy
        seconds["device"] += length * device
        seconds["cores"] += length * full
        if not device and not full:
            by[_instead(stages)] += length
    wall = seconds["wall"]
    return Overlap(
        device=seconds["device"] / wall,
        cores=seconds["cores"] / wall,
        neither=sum(by.values()) / wall,
        neither_by={name: by[name] / wall for name in sorted(by, key=by.__getitem__, reverse=True)},
        busy=seconds["busy"] / wall,
    )


def _instead(stages: Sequence[str]) -> str:
    """What was going on when neither the device nor all cores had work."""
    for stage in (*PREPARING, "waiting"):
        if stage in stages:
            return stage
    return "builds, cores not full" if "build" in stages else "between candidates"


def said(found: Overlap) -> str:
    """A line for people."""
    rest = ", ".join(f"{name} {share:.0%}" for name, share in found.neither_by.items() if share >= 0.005)
    shares = f"on the device {found.device:.0%}, cores full of builds {found.cores:.0%}"
    return f"{shares}, neither {found.neither:.0%}{f' ({rest})' if rest else ''}; cores busy {found.busy:.0%}"
