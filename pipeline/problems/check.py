"""Checks whether a problem is fit to judge candidates, in a process of its own: problem code never runs here.

The process is `python -m kernelproof.verifier.referee.fitness`; this module starts it, limits it and reads
its record.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress

from pydantic import ValidationError

from kernelproof.errors import MachineError, UsageError
from kernelproof.types import Problem
from kernelproof.types.problem import NO_DEVICE, Fitness, FitnessFinding, Unfit

TIME_LIMIT_S = 120.0


def check_problem(
    problem: Problem,
    *,
    size: str = "small",
    device: str = "cpu",
    time_limit: float = TIME_LIMIT_S,
    on_wait: Callable[[str], None] = lambda _: None,
) -> Fitness:
    """Runs the reference of `problem` in a trusted process and reports what makes it unfit.

    `time_limit` is in seconds. A GPU is used alone: `on_wait` is called with a sentence when another
    process measures there. A crash, out-of-memory or time-out of that process is a finding. Raises
    UsageError for a size that the problem does not have or an unknown device, MachineError for a device
    that this machine does not have.
    """
    if not re.fullmatch(r"cpu|cuda(:\d+)?", device):
        raise UsageError(f"no device {device!r}; say cpu, cuda or cuda:1")
    if size not in problem.sizes:
        raise UsageError(f"{problem.id} has no size {size!r}; it has {', '.join(sorted(problem.sizes))}")
    started = time.monotonic()
    code, output, errors = _run(problem, size, device, time_limit, on_wait)
    seconds = time.monotonic() - started
    if code == NO_DEVICE:
        raise MachineError(errors.decode(errors="replace").strip().splitlines()[-1])
    if code is None:
        message = f"not done after {time_limit:g} s; choose a smaller size, or a longer --time-limit"
        finding = FitnessFinding(reason=Unfit.TIMEOUT, message=message)
    else:
        with suppress(ValidationError):
            return Fitness.model_validate_json(output).model_copy(update={"seconds": seconds})
        finding = _crash(code, errors)
    return Fitness(problem_id=problem.id, size=size, device=device, findings=(finding,), seconds=seconds)


def _run(
    problem: Problem, size: str, device: str, time_limit: float, on_wait: Callable[[str], None]
) -> tuple[int | None, bytes, bytes]:
    """Exit code (None: time-out), the record, and standard error of the process."""
    waiting, theirs = os.pipe()
    command = [
        sys.executable,
        "-P",
        "-m",
        "kernelproof.verifier.referee.fitness",
        "--size",
        size,
        "--device",
        device,
    ]
    with (
        os.fdopen(waiting, encoding="utf-8") as sentences,
        subprocess.Popen(
            [*command, "--waiting", str(theirs)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
            pass_fds=(theirs,),
        ) as process,
    ):
        os.close(theirs)
        try:
            for sentence in sentences:  # until the device is free, or the process gone
                on_wait(sentence.rstrip("\n"))
            output, errors = process.communicate(problem.model_dump_json().encode(), timeout=time_limit)
        except BaseException as error:  # an interrupt by the user must not leave the process behind
            os.killpg(process.pid, signal.SIGKILL)
            if isinstance(error, subprocess.TimeoutExpired):
                return None, b"", b""
            raise
    return process.returncode, output, errors


def _crash(code: int, errors: bytes) -> FitnessFinding:
    lines = [line for line in errors.decode(errors="replace").splitlines() if line.strip()]
    figures = {"exit_code": code, "stderr": "\n".join(lines[-20:])[-2000:]}
    if code == -signal.SIGKILL:
        message = "the process was killed, most likely for its memory; choose a smaller size"
        return FitnessFinding(reason=Unfit.OUT_OF_MEMORY, message=message, figures=figures)
    how = f"signal {signal.Signals(-code).name}" if code < 0 else f"exit code {code}"
    last = f": {lines[-1].strip()[:200]}" if lines else ""
    return FitnessFinding(
        reason=Unfit.CRASH, message=f"the process ended with {how}, without a record{last}", figures=figures
    )
