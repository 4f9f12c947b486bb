"""Says of one problem after another whether it is fit: ``python -m benchmarks.fitness_server SIZE DEVICE``.

Reads Problems as lines of JSON. Writes two lines for each: `begun` once the device is free, then as JSON
what `problems check` would find. One process for many problems saves the seconds that Python, torch and the
GPU take to start. `FitnessServer` is the other end: it replaces a process that crashed, hung, or was left in
doubt by a problem that raised.
"""

from __future__ import annotations

import gc
import os
import resource
import select
import subprocess
import sys
import threading
import time
from typing import TYPE_CHECKING

from kernelproof.types import Problem
from kernelproof.types.problem import Fitness, FitnessFinding, Unfit

if TYPE_CHECKING:
    from types import TracebackType

DOUBTFUL = {Unfit.ERROR, Unfit.CRASH, Unfit.OUT_OF_MEMORY}
"""After these the process is replaced: an error on a GPU stays with the process that made it."""
TURN_SECONDS = 900.0
"""Most seconds until the process is up and the device is free."""


class FitnessServer:
    """Asks a process of its own, for one problem at a time. Thread-safe; to be closed."""

    def __init__(self, size: str, device: str, seconds: float) -> None:
        """`seconds`: most for one problem."""
        self._size, self._device, self._seconds = size, device, seconds
        self._turn = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None

    def check(self, problem: Problem) -> Fitness:
        """As `kernelproof.problems.check.check_problem`."""
        with self._turn:
            began = time.monotonic()
            answer = self._asked(problem)
            if isinstance(answer, Unfit):
                findings = (FitnessFinding(reason=answer, message="its process was replaced"),)
                answer = Fitness(
                    problem_id=problem.id,
                    size=self._size,
                    device=self._device,
                    findings=findings,
                    seconds=0.0,
                )
            if DOUBTFUL & {finding.reason for finding in answer.findings}:
                self._end()
            return answer.model_copy(update={"seconds": time.monotonic() - began})

    def _asked(self, problem: Problem) -> Fitness | Unfit:
        process = self._started()
        assert process.stdin is not None
        try:
            process.stdin.write(problem.model_dump_json().encode() + b"\n")
            process.stdin.flush()
            line = self._line(process, TURN_SECONDS) and self._line(process, self._seconds)
        except OSError:
            line = b""
        if line is None:
            self._end()
            return Unfit.TIMEOUT
        return Fitness.model_validate_json(line) if line.endswith(b"\n") else Unfit.CRASH

    def _line(self, process: subprocess.Popen[bytes], seconds: float) -> bytes | None:
        """A line that it writes; incomplete when it ended; None when the time is up."""
        assert process.stdout is not None
        deadline, line = time.monotonic() + seconds, b""
        while not line.endswith(b"\n"):
            ready, _, _ = select.select([process.stdout], [], [], max(0.0, deadline - time.monotonic()))
            if not ready:
                return None
            piece = os.read(process.stdout.fileno(), 1)  # the bytes after it are the next line's
            if not piece:
                break
            line += piece
        return line

    def _started(self) -> subprocess.Popen[bytes]:
        if self._process is None or self._process.poll() is not None:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "benchmarks.fitness_server", self._size, self._device],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                start_new_session=True,
            )
        return self._process

    def _end(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.communicate()
            self._process = None

    def close(self) -> None:
        """Ends the process."""
        with self._turn:
            self._end()

    def __enter__(self) -> FitnessServer:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def main() -> None:
    """Serves standard input. The output of problems goes to standard error."""
    import psutil
    import torch

    from kernelproof.verifier.devices import locks
    from kernelproof.verifier.referee.environment import describe_environment
    from kernelproof.verifier.referee.fitness import examine

    size, device = sys.argv[1], torch.device(sys.argv[2])
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    if device.type == "cpu":  # a reference too big for this machine gets an error of its own
        resource.setrlimit(resource.RLIMIT_DATA, (psutil.virtual_memory().available, resource.RLIM_INFINITY))
    gpu = describe_environment(device).gpu
    for line in sys.stdin.buffer:
        problem = Problem.model_validate_json(line)
        with locks.held(gpu.uuid if gpu is not None else locks.CPU):  # its memory is shared too
            answers.write("begun\n")
            answers.flush()
            answer = examine(problem, size, device)
            gc.collect()
            if gpu is not None:
                torch.cuda.empty_cache()
        answers.write(answer.model_dump_json() + "\n")
        answers.flush()


if __name__ == "__main__":
    main()
