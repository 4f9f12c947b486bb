"""Verdicts on mutants and twins: real verifications without timing, several side by side on one GPU."""

from __future__ import annotations

import fcntl
import os
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType

from benchmarks.evidence import Record
from benchmarks.mutants.deciding import UNKNOWN_BYTES
from benchmarks.mutants.recipes import Recipe
from kernelproof.errors import KernelproofError
from kernelproof.types import CheckOutcome, ErrorStatistics, Problem, Status, Verification, VerifySettings
from kernelproof.verifier.devices.discovery import chosen_gpu
from kernelproof.verifier.devices.locks import DIRECTORY_VARIABLE
from kernelproof.verifier.engine.engine import Engine

SEATS = 64
"""Parts of a GPU's memory that a verification may hold some of."""
SLOTS = 10
"""Sets of inputs and outputs that a verification may hold, its truths in float64 among them."""
BASE_BYTES = 3 << 30
"""GPU memory of two processes before they hold a tensor."""


class Judge:
    """The judge of one process. Nothing is timed, so that several such processes may share a GPU."""

    def __init__(self, settings: VerifySettings) -> None:
        self._settings = settings
        self._locks = tempfile.TemporaryDirectory(prefix="kernelproof-mutants-")
        os.environ[DIRECTORY_VARIABLE] = self._locks.name  # no other process is waited for
        self._engine = Engine(many=True)
        self.environment = self._engine.environment(settings)
        gpu = self.environment.gpu
        self._memory = gpu.memory_bytes if gpu else 0

    def __enter__(self) -> Judge:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: object, trace: TracebackType | None) -> None:
        self._engine.close()
        self._locks.cleanup()

    def verdict(self, problem: Problem, candidate: Record) -> Record:
        """The verdict on a candidate; `candidate` is one that was decided to be judged."""
        recipe = Recipe(*(candidate[name] for name in ("role", "row", "name", "call")))
        source = recipe.source(problem, problem.sizes[self._settings.size])
        with seated(_seats(candidate["extent"], self._memory)):
            began = time.monotonic()
            try:
                verdict = self._engine.verify(source, problem, self._settings)
            except KernelproofError as error:
                return {"status": Status.INFRASTRUCTURE_ERROR.value, "reason": str(error)[:300]}
            return _described(verdict) | {"seconds": round(time.monotonic() - began, 2)}


def _described(verdict: Verification) -> Record:
    failed = next((check.name for check in verdict.checks if check.outcome is CheckOutcome.FAIL), None)
    worst = max(verdict.errors, key=_share_of_allowed, default=None)
    return {
        "status": verdict.status.value,
        "reason": verdict.reason[:400],
        "check": failed,
        "flags": [flag.value for flag in verdict.flags],
        "worst": worst and worst.model_dump(mode="json"),
        "stages": verdict.stage_seconds,
        "verifier": verdict.verifier,
    }


def _share_of_allowed(found: ErrorStatistics) -> tuple[bool, float]:
    """The error beside what is allowed: the largest is the one to show."""
    return found.wrong > 0, found.relative_norm / (found.allowed_norm or 1.0)


def _seats(extent: Record | None, memory: int) -> int:
    """How many seats a verification takes."""
    if not memory:
        return 0
    slot, weights = (extent["slot_bytes"], extent["weight_bytes"]) if extent else (UNKNOWN_BYTES // 4, 0)
    wanted = BASE_BYTES + SLOTS * slot + 6 * weights
    return min(SEATS, 1 + wanted * SEATS // memory)


@contextmanager
def seated(count: int) -> Iterator[None]:
    """Holds so many of the GPU's seats; waits until others have left them. The kernel takes back those of a
    process that ends."""
    gpu = chosen_gpu()
    place = Path(tempfile.gettempdir()) / f"kernelproof-seats-{os.getuid()}-{gpu.uuid if gpu else 'cpu'}"
    place.mkdir(exist_ok=True)
    held: dict[int, int] = {}
    try:
        if count:
            turn = _locked(place / "turn", wait=True)  # who waits for many is not overtaken
            try:
                while len(held) < count:
                    for number in set(range(SEATS)) - held.keys():
                        if len(held) < count and (seat := _locked(place / str(number), wait=False)) >= 0:
                            held[number] = seat
                    time.sleep(0.05 if len(held) < count else 0)
            finally:
                os.close(turn)
        yield
    finally:
        for seat in held.values():
            os.close(seat)


def _locked(path: Path, *, wait: bool) -> int:
    """A descriptor that holds the lock; -1 where another process does.

    A record lock (fcntl(2)): a process that is forked meanwhile, and outlives the verification, does not
    inherit it."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.lockf(descriptor, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
    except OSError:
        os.close(descriptor)
        return -1
    return descriptor
