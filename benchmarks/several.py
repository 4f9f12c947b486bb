"""Runs a benchmark on every visible GPU at once: ``python -m benchmarks.several coverage -- --repeats 10``.

One process for each GPU, which sees that GPU alone and does its share of the work. Each writes a log and a
result of its own beside the merged one; the tables of all of them together are printed at the end. Without a
GPU it is one process. Run again, they go on with what is missing in the merged result.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.evidence import merged
from kernelproof.verifier.devices.discovery import VISIBLE, gpus

BENCHMARKS = ("coverage", "kernelbench_sweep", "mutants")


def start(
    benchmark: str, arguments: Sequence[str], target: Path, device: str | None, share: str
) -> subprocess.Popen[bytes]:
    """A process with its share of the work; its output goes to a log beside `target`."""
    environment = dict(os.environ) | ({VISIBLE: device} if device is not None else {})
    command = [sys.executable, "-m", f"benchmarks.{benchmark}", *arguments]
    with target.with_suffix(".log").open("wb") as log:
        return subprocess.Popen(
            [*command, "--share", share, "--json", str(target)],
            env=environment,
            stdout=log,
            stderr=subprocess.STDOUT,
        )


def run(benchmark: str, arguments: Sequence[str], whole: Path, processes: int = 0) -> dict[str, Any]:
    """The merged result of all processes, also written to `whole`, from which they go on where it is there.
    Exits when one of them left none.

    `processes`: how many, in place of one for each GPU; they share the GPUs in turns.
    """
    devices: list[str | None] = [gpu.uuid for gpu in gpus()] or [None]
    count = processes or len(devices)
    whole.parent.mkdir(parents=True, exist_ok=True)
    targets = [whole.with_name(f"{whole.stem}.{index}.json") for index in range(count)]
    for target in targets if whole.exists() else ():
        if not target.exists():
            shutil.copyfile(whole, target)
    running: list[subprocess.Popen[bytes]] = []
    try:
        for index, target in enumerate(targets):
            device = devices[index % len(devices)]
            running.append(start(benchmark, arguments, target, device, f"{index}/{count}"))
        codes = [process.wait() for process in running]
    finally:
        for process in running:
            process.terminate()
    for code, target in zip(codes, targets, strict=True):
        if code:
            print(f"a process ended with exit code {code}; see {target.with_suffix('.log')}", file=sys.stderr)
    there = [target for target in targets if target.exists()]
    if not there:
        raise SystemExit("no process left a result")
    result = merged(there)
    whole.write_text(json.dumps(result, indent=1) + "\n")
    return result


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("benchmark", choices=BENCHMARKS)
    parser.add_argument("--json", type=Path, help="the merged result")
    parser.add_argument("--processes", type=int, default=0, help="instead of one for each GPU")
    parser.epilog = "What follows -- is given to the benchmark."
    given = sys.argv[1:]
    here = given.index("--") if "--" in given else len(given)
    options = parser.parse_args(given[:here])
    whole = options.json or Path("generated/benchmarks") / f"{options.benchmark}.json"
    result = run(options.benchmark, given[here + 1 :], whole, options.processes)
    importlib.import_module(f"benchmarks.{options.benchmark}").show(result["records"])
    print(f"{len(result['records'])} records, {result['left']} left; written to {whole}")


if __name__ == "__main__":
    main()
