"""Where the time of one verification goes, stage by stage: ``python -m benchmarks.timeline``.

A recorded correct answer is verified three ways: with nothing cached and nothing started; once more by a new
engine, the builds cached; and as in a batch, by an engine that has just verified another candidate and has
processes ready. Prints a table and a bar for each, writes JSON; asserts nothing.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from benchmarks.candidates import Work, right
from benchmarks.measuring import environment
from benchmarks.stages import Watched, watched
from kernelproof import backends
from kernelproof.problems import open_suite
from kernelproof.runs.sizes import choose_size
from kernelproof.types import BuildRequest, Rigor, Verification, VerifySettings
from kernelproof.verifier.build import Builder, learn_toolchain
from kernelproof.verifier.devices.discovery import default_backend
from kernelproof.verifier.engine.engine import Engine

WITHIN = {"correctness": ("correctness", "kernels"), "timing": ("timing", "probes", "baselines")}
"""Stages of the record that lie between one thing that the engine tells and the next."""
REST = "rest"
"""What no stage of the record holds: ending processes, giving memory back, sending the verdict."""
LEAST_REST_S = 0.03
WIDTH = 48


@dataclass(frozen=True)
class Row:
    """One stage: where it begins after the start of the verification, and how long it is, in seconds."""

    stage: str
    begin_s: float
    seconds: float
    remark: str


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--problem", default="level1/2", help="one that has a recorded correct answer")
    parser.add_argument("--backend", default=default_backend(), choices=backends.names())
    parser.add_argument("--rigor", default="quick", choices=list(map(str, Rigor)))
    parser.add_argument("--output", type=Path, default=Path("generated/benchmarks/timeline.json"))
    options = parser.parse_args()
    problem = open_suite().find(options.problem)
    work = Work(problem, right(options.backend, problem))
    size = choose_size(None, options.backend, [problem])
    settings = VerifySettings(backend=options.backend, size=size, rigor=Rigor(options.rigor))
    cases, once = [], made_once()
    said = ", ".join(f"{name} {seconds:.1f} s" for name, seconds in once.items())
    print(f"made once for a cache, and part of the first build: {said}")
    for name, seen in cases_of(work, settings):
        rows = rows_of(seen)
        show(name, rows, seen.verification)
        cases.append({"name": name, "status": seen.verification.status, "rows": [asdict(r) for r in rows]})
    options.output.parent.mkdir(parents=True, exist_ok=True)
    result: dict[str, Any] = {
        "problem": problem.id,
        "settings": settings.model_dump(mode="json"),
        "made_once_s": once,
    }
    result |= {"cases": cases, "environment": environment()}
    options.output.write_text(json.dumps(result, indent=2) + "\n")
    print(f"written to {options.output}")


def made_once() -> dict[str, float]:
    """Seconds of what the first build in an empty cache makes for all that follow, here in one of its own."""
    first = BuildRequest(name="first", cpp_sources=("int f() { return 1; }",), functions={"f": "f"})
    with tempfile.TemporaryDirectory(prefix="kernelproof-timeline-") as folder:
        began = time.monotonic()
        toolchain = learn_toolchain(Path(folder))
        learnt = time.monotonic()
        Builder(Path(folder), toolchain=toolchain).build(first)
        return {
            "learning the toolchain": learnt - began,
            "the glue, and a first extension": time.monotonic() - learnt,
        }


def cases_of(work: Work, settings: VerifySettings) -> Iterator[tuple[str, Watched]]:
    """The same candidate three times, each time with more of it there already."""
    with tempfile.TemporaryDirectory(prefix="kernelproof-timeline-") as folder:
        with Engine(Path(folder)) as engine:
            yield "nothing cached, nothing started", watched(engine, work, settings)
        with Engine(Path(folder)) as engine:
            yield "builds cached, nothing started", watched(engine, work, settings)
        with Engine(Path(folder), many=True) as engine:
            for _ in range(2):  # the first starts the referee, the second leaves processes as a batch does
                engine.verify(work.source, work.problem, settings)
            yield "as in a batch", watched(engine, work, settings)


def rows_of(seen: Watched) -> list[Row]:
    """The stages in their order; a stretch that is left out between them is shorter than LEAST_REST_S."""
    known, remarks = seen.verification.stage_seconds, remarks_on(seen.verification)
    start, rows = seen.spans[0].begin, []
    for span in seen.spans:
        begin = span.begin - start
        names = [name for name in WITHIN.get(span.stage, (span.stage,)) if name in known]
        parts = [(name, known[name]) for name in names] or [(span.stage, span.seconds)]
        rest = span.seconds - sum(seconds for _, seconds in parts)
        for name, seconds in [*parts, (REST, rest)]:
            if seconds >= (LEAST_REST_S if name == REST else 0.001):
                rows.append(Row(name, begin, seconds, remarks.get(name, "")))
                begin += seconds
    return rows


def remarks_on(verdict: Verification) -> dict[str, str]:
    """By stage, what explains its length."""
    found = {}
    if verdict.builds:
        kinds = ", ".join(f"{build.duration_s:.1f} s ({build.route})" for build in verdict.builds)
        cached = all(build.cached for build in verdict.builds)
        found["build"] = "cached" if cached else f"of it compiling {kinds}"
    measured = verdict.measurement
    if measured is not None:
        low, high = measured.speedup_interval.low, measured.speedup_interval.high
        half = (high - low) / 2 / measured.speedup
        aim = verdict.settings.target_half_width or verdict.settings.rigor.half_width
        found["timing"] = f"{len(measured.order)} rounds, to +-{half:.1%} (aim {aim:.1%})"
    return found


def show(name: str, rows: list[Row], verdict: Verification) -> None:
    """A line and a bar for each stage."""
    whole = sum(row.seconds for row in rows)
    print(f"\n{name}: {whole:.2f} s, {verdict.status}")
    for row in rows:
        print(f"  {row.stage:12} {row.seconds:7.3f} s  |{bar(row, whole):{WIDTH}}|  {row.remark}".rstrip())


def bar(row: Row, whole: float) -> str:
    """The row's place in the whole time, at least one character long."""
    first = min(int(WIDTH * row.begin_s / whole), WIDTH - 1)
    length = max(1, round(WIDTH * row.seconds / whole))
    return (" " * first + "#" * length)[:WIDTH]


if __name__ == "__main__":
    main()
