"""Verified candidates an hour, ours against one after the other: ``python -m benchmarks.throughput``.

The candidates are the recorded answers of six problems, right, wrong and broken as they come, each made
distinct by a line of its own in its sources: nothing compiles twice. Ours: one engine, `--rigor quick`, as
many in flight as a batch has, an empty cache of builds; a first candidate makes the glue and, once on each
GPU, the day's A/A spread, and is timed apart. `benchmarks.overlap` says how much of that time device and
cores were at work.
Alone: the last of them once more, one at a time on each GPU and nothing else going on, with the batch's
builds: does a batch change a verdict or a speedup (`benchmarks.pairs`)? Stock: `benchmarks.stock`, a fresh
process for each. Prints tables and writes JSON after each of the three. The exit code is 1 when a status was
another one alone, or a candidate was `correct` that is not meant to be.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from pathlib import Path
from typing import Any

from benchmarks.candidates import Work, candidates, sized
from benchmarks.measuring import environment
from benchmarks.overlap import CoresWatch, Overlap, overlap_of, said
from benchmarks.pairs import Pair, Times, all_right, as_rows, paired, shown, summary
from benchmarks.stages import Watched, watched_batch
from kernelproof import backends
from kernelproof.jobs import Job, Judge
from kernelproof.jobs.judge import without_program
from kernelproof.runs.sizes import choose_size
from kernelproof.types import Rigor, Verification, VerifySettings
from kernelproof.verifier.devices.discovery import default_backend, device_for, gpus
from kernelproof.verifier.engine.engine import Engine

ON_DEVICE = ("reference", "correctness", "kernels", "timing", "probes", "baselines", "canary")
"""Stages that compute there."""

MEASURED = {"candidate_ms", "baseline_ms", "clocks_before", "clocks_after"}
"""Of a measurement, for each candidate."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=24, help="distinct candidates")
    parser.add_argument("--alone", type=int, default=0, help="of these, so many are verified alone as well")
    parser.add_argument(
        "--stock",
        type=int,
        help="of these, so many are evaluated the usual way, one of each problem in turn; all",
    )
    parser.add_argument("--backend", default=default_backend(), choices=backends.names())
    parser.add_argument("--output", type=Path, default=Path("generated/benchmarks/throughput.json"))
    options = parser.parse_args()
    if options.count < 2:
        parser.error("--count: at least 2, of which the first is timed apart")
    work = candidates(options.backend, options.count)
    size = choose_size(None, options.backend, [each.problem for each in work])
    settings = VerifySettings(backend=options.backend, size=size, rigor=Rigor.QUICK)
    result: dict[str, Any] = {"backend": options.backend, "environment": environment()}
    pairs: list[Pair] = []
    with tempfile.TemporaryDirectory(prefix="kernelproof-throughput-") as folder:
        ours, together = batch(work, settings, Path(folder))
        result["ours"] = ours
        show(ours, None)
        write(options.output, result)
        if options.alone:
            pairs = once_more(work, together, settings, Path(folder), options.alone)
            result["alone"] = as_rows(pairs)
            print(f"{shown(pairs)}\n{summary(pairs)}")
            write(options.output, result)
    result["stock"] = stock = one_by_one(sample(work, options.stock), settings)
    show(ours, stock)
    write(options.output, result)
    sys.exit(0 if all_right(pairs) else 1)


def sample(work: list[Work], count: int | None) -> list[Work]:
    """So many of them, or all: one of each problem in turn, as what the usual way costs depends on that."""
    turns: dict[str, int] = {}

    def turn(each: Work) -> int:
        turns[each.problem.id] = turns.get(each.problem.id, 0) + 1
        return turns[each.problem.id]

    return sorted(work, key=turn)[:count]


def write(path: Path, result: dict[str, Any]) -> None:
    """What there is so far."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(result, indent=2) + "\n")
    print(f"written to {path}", flush=True)


def batch(
    work: list[Work], settings: VerifySettings, folder: Path
) -> tuple[dict[str, Any], dict[int, Verification]]:
    """All of them through one engine, whose cache is in `folder`: the figures, and the verdicts by number."""
    first = work[:1] * judges(settings)  # a day's A/A spread is that of one GPU
    with Engine(folder, many=True) as engine:
        began = time.monotonic()
        with ThreadPoolExecutor(len(first)) as pool:
            list(pool.map(lambda one: engine.verify(one.source, one.problem, settings), first))
        ready = time.monotonic() - began
        with CoresWatch() as cores:
            began = time.monotonic()
            done = list(watched_batch(engine, work, settings, first=1))
            wall = time.monotonic() - began
    by_number = {each.number: each.verification for each in done}
    verdicts, spans = [each.verification for each in done], [span for each in done for span in each.spans]
    stages: Counter[str] = Counter()
    for verdict in verdicts:
        stages.update(verdict.stage_seconds)
    figures = {
        "backend": settings.backend,
        "count": len(done),
        "wall_s": wall,
        "first_s": ready,
        "statuses": Counter(str(verdict.status) for verdict in verdicts),
        "each": [one_of(each) for each in done],
        "stages_s": dict(stages),
        "build_cpu_s": sum(build.cpu_s for verdict in verdicts for build in verdict.builds),
        "overlap": asdict(
            overlap_of(cores.samples, spans, device_is_cpu=not backends.backend(settings.backend).on_gpu)
        ),
    }
    return figures, by_number


def judges(settings: VerifySettings) -> int:
    """How many candidates are judged at a time: one on each GPU, or one on a CPU."""
    return len(gpus()) or 1 if backends.backend(settings.backend).on_gpu else 1


def once_more(
    work: list[Work], together: dict[int, Verification], settings: VerifySettings, folder: Path, count: int
) -> list[Pair]:
    """The last `count` of a batch, now one at a time. Raises what `Engine.verify` raises."""
    chosen = sorted(together)[-count:]
    with Engine(folder, many=True) as engine, ThreadPoolExecutor(judges(settings)) as pool:

        def by_itself(number: int) -> Verification:
            job = Job.of_text(work[number].source, work[number].problem, settings)
            return Judge(engine).judge(job).verification or without_program(job)

        alone = list(pool.map(by_itself, chosen))
    both = zip(chosen, alone, strict=True)
    return [paired(number, work[number], together[number], one) for number, one in both]


def one_of(watched: Watched) -> dict[str, Any]:
    """A candidate's line in the JSON: what it was, its times and the GPU's clocks, and how long each stage
    took, by us and by the referee."""
    verdict, seen = watched.verification, Counter[str]()
    measured = verdict.measurement
    for span in watched.spans:
        seen[span.stage] += span.seconds
    times = Times.of(measured)
    return {
        "number": watched.number,
        "problem": verdict.problem_id,
        "status": str(verdict.status),
        "speedup": None if times is None else asdict(times),
        "measured": measured and measured.model_dump(mode="json", include=MEASURED),
        "quiet": next((c.figures for c in verdict.checks if c.name == "undisturbed"), None),
        "seen_s": {stage: round(seconds, 3) for stage, seconds in seen.items()},
        "stages_s": verdict.stage_seconds,
    }


def one_by_one(work: list[Work], settings: VerifySettings) -> dict[str, Any]:
    """Each in a process of its own, the usual way."""
    device = "cuda" if device_for(settings.backend) != "cpu" else "cpu"
    found, began, before = [], time.monotonic(), cpu_seconds()
    with tempfile.TemporaryDirectory(prefix="kernelproof-throughput-") as folder:
        for number, each in enumerate(work):
            problem, candidate = Path(folder, "problem.py"), Path(folder, f"candidate_{number}.py")
            problem.write_text(sized(each.problem, settings.size))
            candidate.write_text(each.source)
            command = [sys.executable, "-m", "benchmarks.stock", str(problem), str(candidate), device]
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            lines = done.stdout.strip().splitlines()
            one = json.loads(lines[-1]) if lines else {"correct": False, "error": "it ended"}
            found.append({"problem": each.problem.id} | one)
    said = Counter("correct" if each["correct"] else "not" for each in found)
    wall = time.monotonic() - began
    cpu_s = cpu_seconds() - before
    return {"count": len(found), "wall_s": wall, "statuses": said, "cpu_s": cpu_s, "each": found}


def cpu_seconds() -> float:
    """Of all children that have ended and were waited for."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def show(ours: dict[str, Any], stock: dict[str, Any] | None) -> None:
    """Both, and the ratio of their rates; ours alone while there is no other."""
    print(f"{'':6} candidates  wall s  s each  an hour  statuses")
    rates = []
    for name, one in (("ours", ours), ("stock", stock)):
        if one is None or not one["count"]:
            continue
        rates.append(one["count"] / one["wall_s"])
        statuses = ", ".join(f"{count} {status}" for status, count in sorted(one["statuses"].items()))
        each, hour = one["wall_s"] / one["count"], 3600 * rates[-1]
        print(f"{name:6} {one['count']:10}  {one['wall_s']:6.1f}  {each:6.2f}  {hour:7.0f}  {statuses}")
    if len(rates) == 2:
        print(f"ratio {rates[0] / rates[1]:.1f}")
    print(bound(ours))
    stages = ", ".join(f"{name} {seconds:.0f}" for name, seconds in sorted(ours["stages_s"].items()))
    print(f"seconds by stage, all together: {stages}; the first candidate {ours['first_s']:.1f} s")
    print(f"of the wall time: {said(Overlap(**ours['overlap']))}")


def bound(ours: dict[str, Any]) -> str:
    """What the compilers need of all cores and the candidates of the device, each alone; and, where these are
    not the same thing, how much of the rate that the busier of the two allows was reached."""
    cores, count = len(os.sched_getaffinity(0)), ours["count"]
    compiling = ours["build_cpu_s"] / cores / count
    device = sum(ours["stages_s"].get(stage, 0.0) for stage in ON_DEVICE) / count
    told = f"compiling alone, on {cores} cores: {compiling:.2f} s each; the device alone: {device:.2f} s each"
    if not backends.backend(ours["backend"]).on_gpu:
        return told
    return f"{told}; {max(compiling, device) * count / ours['wall_s']:.0%} of the rate that this allows"


if __name__ == "__main__":
    main()
