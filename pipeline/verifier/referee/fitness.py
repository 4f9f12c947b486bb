"""Is a problem fit to judge candidates?

`python -m kernelproof.verifier.referee.fitness` reads a Problem as JSON from standard input and writes one
Fitness record as JSON to standard output.

`fitness_questions` has the questions. This code is trusted, but the problem's own code runs in this process,
so the orchestrator starts it with limits (`kernelproof.problems.check`).
"""

from __future__ import annotations

import gc

if __name__ == "__main__":
    gc.disable()  # importing makes objects by the hundred thousand, and none of them is garbage

import argparse
import os
import resource
import sys
import time
from collections.abc import Callable
from contextlib import nullcontext, suppress
from pathlib import Path

import psutil
import torch

from kernelproof.types import Problem
from kernelproof.types.problem import NO_DEVICE, Fitness, FitnessFinding, Unfit
from kernelproof.verifier.contestant.main import configure_torch
from kernelproof.verifier.devices import locks
from kernelproof.verifier.referee.environment import describe_environment
from kernelproof.verifier.referee.fitness_questions import finding, findings
from kernelproof.verifier.referee.inputs.problem import LoadedProblem, ProblemError


def examine(problem: Problem, size: str, device: torch.device) -> Fitness:
    """Everything that is wrong with `problem` at `size`; never raises for what the problem does."""
    started = time.monotonic()
    configure_torch(0)  # the precision that candidates are judged in: no TF32 behind float32
    found: list[FitnessFinding] = []
    try:
        for each in findings(LoadedProblem(problem, size), device):
            found.append(each)
    except Exception as error:
        if _is_out_of_memory(error):
            found.append(finding(Unfit.OUT_OF_MEMORY, f"not enough memory on {device} at size {size}"))
        elif isinstance(error, ProblemError):
            found.append(finding(Unfit.ERROR, str(error)))
        else:
            raise
    seconds = time.monotonic() - started
    return Fitness(
        problem_id=problem.id, size=size, device=device.type, findings=tuple(found), seconds=seconds
    )


def _is_out_of_memory(error: BaseException) -> bool:
    """A GPU's or the host's; torch reports the host's as a RuntimeError of the CPU allocator."""
    causes = [error, error.__cause__]
    if any(isinstance(cause, torch.OutOfMemoryError | MemoryError) for cause in causes):
        return True
    return any("DefaultCPUAllocator" in str(cause) for cause in causes)


def _limit_memory(device: torch.device) -> None:
    """On the CPU, a reference too big for this machine gets an error of its own instead of harming others."""
    if device.type == "cpu":
        available = psutil.virtual_memory().available
        resource.setrlimit(resource.RLIMIT_DATA, (available, resource.RLIM_INFINITY))
    with suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text("1000")


def _private_output() -> Callable[[str], None]:
    """Keeps standard output for the record; the problem's own output goes to standard error."""
    record = os.dup(1)
    os.dup2(2, 1)

    def write(text: str) -> None:
        with os.fdopen(record, "w", encoding="utf-8") as stream:
            stream.write(text + "\n")

    return write


def main() -> None:
    """Reads a Problem, writes its Fitness."""
    gc.freeze()  # imported objects stay
    gc.enable()
    parser = argparse.ArgumentParser(
        prog="python -m kernelproof.verifier.referee.fitness", description=__doc__
    )
    parser.add_argument("--size", required=True, help="size preset of the problem")
    parser.add_argument("--device", required=True, help="cpu or cuda")
    parser.add_argument(
        "--waiting", type=int, required=True, help="descriptor, closed when the device is free"
    )
    arguments = parser.parse_args()
    write = _private_output()
    device = torch.device(arguments.device)
    if device.type == "cuda" and (device.index or 0) >= torch.cuda.device_count():
        print(f"torch sees no device {device} here; use --device cpu", file=sys.stderr)
        sys.exit(NO_DEVICE)
    _limit_memory(device)
    gpu = describe_environment(device).gpu if device.type == "cuda" else None
    with (
        os.fdopen(arguments.waiting, "w", encoding="utf-8", buffering=1) as waiting,
        # The GPU's memory is shared, and work on it disturbs a process that measures.
        locks.held(gpu.uuid, lambda text: print(text, file=waiting)) if gpu else nullcontext(),
    ):
        waiting.close()
        problem = Problem.model_validate_json(sys.stdin.buffer.read())
        write(examine(problem, arguments.size, device).model_dump_json())


if __name__ == "__main__":
    main()
