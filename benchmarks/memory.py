"""Does a long run grow? ``python -m benchmarks.memory``.

Many candidates of one problem with large inputs, a recorded correct answer made distinct for each, go through
one engine as a batch does. Meanwhile the memory of every process of the engine that lives on is sampled, with
its open files and threads; before and after, `/dev/shm` and the memory of each GPU. Contestants are used once
and count together. By default: 500 candidates of the 8 GB argmin problem on a GPU, 40 with 64 MB on a CPU.
Prints a table, writes JSON; asserts nothing.
"""

from __future__ import annotations

import argparse
import json
import os
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import psutil

from benchmarks.candidates import Work, distinct, right
from benchmarks.evidence import table
from benchmarks.measuring import environment
from benchmarks.sampling import Sampler
from benchmarks.stages import watched_batch
from kernelproof import backends
from kernelproof.problems import open_suite
from kernelproof.types import Problem, Rigor, VerifySettings
from kernelproof.verifier.devices.discovery import default_backend
from kernelproof.verifier.engine.engine import Engine

PROBLEM = "level1/5"
GPU_COUNT, CPU_COUNT = 500, 40
CPU_SIZE = {"BATCH": 4, "ROWS": 1024, "COLUMNS": 4095}
"""64 MB of input, where `full` has 8 GB."""
SHARED_MEMORY = "/dev/shm"
ORCHESTRATOR, REFEREE, WORKERS = "orchestrator", "referee", "sandboxes and compilers"
MIB = 1 << 20


@dataclass(frozen=True)
class Moment:
    """One kind of process at one time, all of its processes together."""

    at_s: float
    """Since the first candidate was begun."""
    done: int
    """Candidates that were over."""
    own: int
    """Bytes that are no file's and not shared: what a leak makes grow. The RSS where that is closed to us."""
    shared: int
    """Bytes of shared memory, such as tensors for contestants, each its part; 0 where that is closed."""
    files: int
    """Open descriptors."""
    threads: int
    processes: int


class Watch(Sampler):
    """Samples the processes below ours in a thread while its block runs."""

    def __init__(self, every_s: float) -> None:
        self.moments: dict[str, list[Moment]] = {ORCHESTRATOR: [], REFEREE: [], WORKERS: []}
        self.done = 0
        self._every_s, self._began = every_s, time.monotonic()
        super().__init__()

    def _watch(self) -> None:
        while not self._over.wait(self._every_s):
            at, done = time.monotonic() - self._began, self.done
            sums: dict[str, Counter[str]] = {name: Counter() for name in self.moments}
            for name, found in _seen():
                sums[name].update(found)
            for name, total in sums.items():
                if total["processes"]:
                    figures = (total[field] for field in ("own", "shared", "files", "threads", "processes"))
                    self.moments[name].append(Moment(at, done, *figures))


def _seen() -> Iterator[tuple[str, dict[str, int]]]:
    """The kind of each process of this run, and its figures; those that end meanwhile are left out."""
    ours = psutil.Process()
    for process in (ours, *ours.children(recursive=True)):
        with suppress(psutil.Error, OSError):
            if process == ours:
                kind = ORCHESTRATOR
            else:
                kind = REFEREE if "kernelproof.verifier.referee" in process.cmdline() else WORKERS
            own, shared = _memory(process)
            files, threads = process.num_fds(), process.num_threads()
            yield kind, {"own": own, "shared": shared, "files": files, "threads": threads, "processes": 1}


def _memory(process: psutil.Process) -> tuple[int, int]:
    """Bytes of a process: its own, and its part of shared memory."""
    try:
        lines = Path(f"/proc/{process.pid}/smaps_rollup").read_text().splitlines()
    except PermissionError:
        return int(process.memory_info().rss), 0
    sizes = {line.split(":")[0]: int(line.split()[1]) << 10 for line in lines if line.endswith(" kB")}
    return sizes["Anonymous"], sizes.get("Pss_Shmem", 0)


@dataclass(frozen=True)
class Growth:
    """What one figure of one kind of process did; each the lowest of a part of the run but for `peak`."""

    middle: int
    """In the second third of the candidates: the first ones bring up what is needed once."""
    last: int
    """In the last third."""
    peak: int


def growth(moments: Sequence[Moment], field: str, count: int) -> Growth | None:
    """None where the run was too short to say."""
    middle = [getattr(m, field) for m in moments if count <= 3 * m.done < 2 * count]
    last = [getattr(m, field) for m in moments if 2 * count <= 3 * m.done]
    if not middle or not last:
        return None
    return Growth(min(middle), min(last), max(getattr(moment, field) for moment in moments))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--backend", default=default_backend(), choices=backends.names())
    parser.add_argument("--count", type=int, help="candidates [500 on a GPU, 40 on a CPU]")
    parser.add_argument("--seconds", type=float, default=1.0, help="most seconds of timed blocks, for each")
    parser.add_argument("--seconds-budget", type=float, help="begin no candidate after so long")
    parser.add_argument("--every", type=float, default=2.0, help="seconds between two looks")
    parser.add_argument("--output", type=Path, default=Path("generated/benchmarks/memory.json"))
    options = parser.parse_args()
    count = options.count or (GPU_COUNT if backends.backend(options.backend).on_gpu else CPU_COUNT)
    problem = sized_for(options.backend)
    answer = right(options.backend, problem)
    work = [Work(problem, distinct(answer, number)) for number in range(count)]
    settings = VerifySettings(backend=options.backend, rigor=Rigor.QUICK, measure_seconds=options.seconds)
    before = outside()
    watch, statuses = verified(work, settings, options.every, options.seconds_budget)
    after, count = outside(), watch.done
    print(f"{count} candidates of {problem.id}: {', '.join(f'{n} {s}' for s, n in statuses.items())}")
    print(shown(watch, count))
    print(table(("outside of the processes", "before", "after"), outside_rows(before, after)))
    options.output.parent.mkdir(parents=True, exist_ok=True)
    moments = {name: [asdict(moment) for moment in found] for name, found in watch.moments.items()}
    result = {"count": count, "statuses": statuses, "before": before, "after": after, "moments": moments}
    options.output.write_text(json.dumps(result | {"environment": environment()}, indent=1) + "\n")
    print(f"written to {options.output}")


def sized_for(backend: str) -> Problem:
    """The problem, with inputs of 8 GB for a GPU and of 64 MB for a CPU."""
    problem = open_suite().find(PROBLEM)
    return (
        problem
        if backends.backend(backend).on_gpu
        else problem.model_copy(update={"sizes": {"full": CPU_SIZE}})
    )


def verified(
    work: Sequence[Work], settings: VerifySettings, every_s: float, seconds: float | None
) -> tuple[Watch, Counter[str]]:
    """All of them in one engine, watched from before it starts until all are judged."""
    statuses = Counter[str]()
    with (
        tempfile.TemporaryDirectory(prefix="kernelproof-memory-") as folder,
        Engine(Path(folder), many=True) as engine,
        Watch(every_s) as watch,
    ):
        for seen in watched_batch(engine, work, settings, seconds=seconds):
            statuses[str(seen.verification.status)] += 1
            watch.done += 1
    return watch, statuses


def outside() -> dict[str, int]:
    """Bytes in use of /dev/shm and of each GPU's memory, by any process."""
    import pynvml

    shared = os.statvfs(SHARED_MEMORY)
    found = {SHARED_MEMORY: (shared.f_blocks - shared.f_bfree) * shared.f_frsize}
    with suppress(pynvml.NVMLError):
        pynvml.nvmlInit()
        for index in range(pynvml.nvmlDeviceGetCount()):
            handle = pynvml.nvmlDeviceGetHandleByIndex(index)
            found[f"GPU {index}"] = int(pynvml.nvmlDeviceGetMemoryInfo(handle).used)
    return found


def outside_rows(before: dict[str, int], after: dict[str, int]) -> list[tuple[str, str, str]]:
    return [(name, f"{used / MIB:.1f} MiB", f"{after[name] / MIB:.1f} MiB") for name, used in before.items()]


def shown(watch: Watch, count: int) -> str:
    """The lowest in the second and in the last third of the candidates, and the highest of all."""
    rows: list[tuple[Any, ...]] = []
    for name, moments in watch.moments.items():
        for field, unit in (("own", MIB), ("shared", MIB), ("files", 1), ("threads", 1), ("processes", 1)):
            found = growth(moments, field, count)
            figures = [v // unit for v in (found.middle, found.last, found.peak)] if found else ["-"] * 3
            rows.append((f"{name}: {field}{' MiB' if unit == MIB else ''}", *figures))
    return table(("process", "second third", "last third", "peak"), rows)


if __name__ == "__main__":
    main()
