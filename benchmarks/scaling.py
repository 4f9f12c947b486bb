"""How throughput grows with cores and with GPUs: ``python -m benchmarks.scaling``.

The batch of `benchmarks.throughput`, without the stock side, in a process of its own for each number of cores
(1, 2, 4 ... and all, by its affinity; one GPU where there are any) and then of GPUs (1 to all, by
`CUDA_VISIBLE_DEVICES`; all cores), the most first. Each GPU has as many candidates as one alone has: so the
seconds at the start, without any build yet, weigh the same. Each process has an empty cache, whose first
candidate is timed apart. Prints a table, writes JSON; asserts nothing.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.evidence import Budget, table
from benchmarks.measuring import environment
from benchmarks.overlap import Overlap
from kernelproof import backends
from kernelproof.verifier.devices.discovery import VISIBLE, default_backend, gpus


@dataclass(frozen=True)
class Place:
    """What one process may use."""

    cores: tuple[int, ...]
    gpus: tuple[str, ...]
    """UUIDs of the GPUs."""

    @property
    def name(self) -> str:
        return f"{len(self.cores)} cores, {len(self.gpus)} GPUs"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=24, help="distinct candidates, for each GPU")
    parser.add_argument("--backend", default=default_backend(), choices=backends.names())
    parser.add_argument("--over", choices=("cores", "gpus"), help="only these, all of the others; both")
    parser.add_argument("--most-cores", type=int, help="none with more; all")
    parser.add_argument("--most-gpus", type=int, help="none with more; all")
    parser.add_argument("--seconds-budget", type=float, help="begin nothing that would end after so long")
    parser.add_argument("--output", type=Path, default=Path("generated/benchmarks/scaling.json"))
    options = parser.parse_args()
    cores = sorted(os.sched_getaffinity(0))[: options.most_cores]
    on_gpu = backends.backend(options.backend).on_gpu
    devices = [gpu.uuid for gpu in gpus()][: options.most_gpus] if on_gpu else []
    if len(devices) < 2:
        why = f"the {options.backend} backend uses none" if not on_gpu else f"{len(devices)} can be used here"
        print(f"no scaling over GPUs: {why}")
    budget = Budget(options.seconds_budget)
    found: list[dict[str, Any]] = []
    for place in reversed(places_of(cores, devices, options.over)):
        if not budget.allows_another():
            print(f"{place.name}: left out, --seconds-budget is used up")
            continue
        print(f"{place.name} ...", flush=True)
        began = time.monotonic()
        found.insert(0, measured(place, options.backend, options.count * max(1, len(place.gpus))))
        budget.note(time.monotonic() - began)
        write(options.output, {"backend": options.backend, "count": options.count, "places": found})
    print(shown(found))
    print(f"written to {options.output}")


def write(path: Path, result: dict[str, Any]) -> None:
    """What is known by now, with the environment."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(result | {"environment": environment()}, indent=2) + "\n")


def places_of(cores: Sequence[int], devices: Sequence[str], over: str | None = None) -> list[Place]:
    """More and more cores with the first GPU, then all cores with more and more GPUs; none twice.

    `over`: all `cores` of the first GPU, or `gpus` with all cores, instead of both.
    """
    if over == "gpus":
        return [Place(tuple(cores), tuple(devices[:count])) for count in range(1, len(devices) + 1)]
    counts = [
        *(1 << power for power in range(len(cores).bit_length()) if 1 << power < len(cores)),
        len(cores),
    ]
    by_cores = [Place(tuple(cores[:count]), tuple(devices[:1])) for count in counts]
    by_gpus = [Place(tuple(cores), tuple(devices[:count])) for count in range(2, len(devices) + 1)]
    return by_cores if over == "cores" else [*by_cores, *by_gpus]


def measured(place: Place, backend: str, count: int) -> dict[str, Any]:
    """What the throughput benchmark says of our side there. Raises CalledProcessError when it fails."""
    with tempfile.TemporaryDirectory(prefix="kernelproof-scaling-") as folder:
        target = Path(folder, "throughput.json")
        command = [sys.executable, "-m", "benchmarks.throughput", "--backend", backend]
        command += ["--count", str(count), "--stock", "0", "--output", str(target)]
        visible = {VISIBLE: ",".join(place.gpus)} if gpus() else {}
        subprocess.run(
            command,
            check=True,
            stdout=subprocess.DEVNULL,
            env=os.environ | visible,
            preexec_fn=lambda: os.sched_setaffinity(0, place.cores),
        )
        ours: dict[str, Any] = json.loads(target.read_text())["ours"]
    return {"cores": len(place.cores), "gpus": len(place.gpus), **ours}


def shown(found: Sequence[dict[str, Any]]) -> str:
    """The table: rates, and the rate over that of the first line."""
    rows, first = [], found[0]["count"] / found[0]["wall_s"]
    for one in found:
        rate, overlap = one["count"] / one["wall_s"], Overlap(**one["overlap"])
        shares = (f"{share:.0%}" for share in (overlap.device, overlap.cores, overlap.neither))
        each = f"{1 / rate:.2f}", f"{3600 * rate:.0f}", f"{rate / first:.2f}"
        rows.append((one["cores"], one["gpus"], one["count"], *each, f"{one['first_s']:.1f}", *shares))
    head = ("cores", "GPUs", "candidates", "s each", "an hour", "times the first", "first s")
    return table((*head, "on the device", "cores full", "neither"), rows)


if __name__ == "__main__":
    main()
