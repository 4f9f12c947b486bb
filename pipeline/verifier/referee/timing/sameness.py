"""How far two processes that run the very same thing are apart on this device today: the A/A spread."""

from __future__ import annotations

import secrets
from statistics import median

import torch

from kernelproof.hashing import sha256_text
from kernelproof.types import Problem, VerifySettings
from kernelproof.verifier.contestant import loop
from kernelproof.verifier.contestant.main import configure_torch
from kernelproof.verifier.referee.correctness.oracle import Oracle
from kernelproof.verifier.referee.inputs.problem import LoadedProblem, outputs_of
from kernelproof.verifier.referee.sides import starting
from kernelproof.verifier.referee.timing import clock
from kernelproof.verifier.referee.timing.disturbance import Watch
from kernelproof.verifier.referee.timing.rounds import Stopwatch
from kernelproof.verifier.referee.timing.timed_outputs import Subject
from kernelproof.verifier.workers.client import ContestantFailed, ContestantGone
from kernelproof.verifier.workers.pool import WarmPool
from kernelproof.verifier.workers.shared_memory import SharedMemory, lay_out

_SOURCE = """
import torch
from torch import nn

WIDTH = {width}


class Model(nn.Module):
    def forward(self, x):
        return torch.softmax(x * 0.5, dim=-1)


def get_inputs():
    return [torch.randn(WIDTH, 4096)]


def get_init_inputs():
    return []
"""
SECONDS = 1.0
"""Most seconds of timed blocks."""
SLOTS = 8
PAIRS = 3
_AS_CANDIDATE = ("inputs", "outputs")
_AS_BASELINE = ("inputs", "baseline")


def aa_spread(settings: VerifySettings, device: torch.device, pool: WarmPool) -> float:
    """Runs a softmax in two contestants against itself; how far off 1 the ratio may be, as a fraction.

    The middle one of three pairs counts, by the median of its log-ratios. For each about a second, and as
    long as two processes take to start. Raises Ended when one does not come up.
    """
    return median(_one_pair(settings, device, pool) for _ in range(PAIRS))


def _one_pair(settings: VerifySettings, device: torch.device, pool: WarmPool) -> float:
    problem = _problem(16384 if device.type == "cuda" else 256)
    settings = settings.model_copy(update={"size": "full", "measure_seconds": SECONDS, "bar": None})
    configure_torch(settings.threads, tf32=settings.numerics == "tf32")
    loaded, memory = LoadedProblem(problem, "full"), SharedMemory(device)
    first = starting.start(pool, starting.no_builds, settings, device)
    second = starting.start(pool, starting.no_builds, settings, device)
    try:
        model = loaded.construct(0, device)
        arguments = loaded.draw(0, device)
        sample = loaded.run(model, arguments, 0)
        oracle = Oracle(loaded, model, loop.describe(sample), device, settings.numerics)
        slots = lay_out(memory, arguments, outputs_of(sample, device), SLOTS)
        del sample
        for side, arenas in ((first, _AS_CANDIDATE), (second, _AS_BASELINE)):
            starting.seat_baseline(side, loaded, memory, {}, 0, settings, device, arenas)
        watch = Watch(device, lambda: (*first.pids(), *second.pids()))
        subject = Subject(oracle, slots, settings, device, lambda: secrets.randbits(62), [1e-6])
        rounds = Stopwatch(subject, first, second, watch).run().rounds
    except (ContestantFailed, ContestantGone) as error:
        raise starting.baseline_failed(error) from None
    finally:
        first.close()
        second.close()
        memory.close()
    return abs(median(clock.log_ratios(rounds)))


def _problem(width: int) -> Problem:
    source = _SOURCE.format(width=width)
    return Problem(
        id="same",
        suite="kernelproof",
        name="same",
        source=source,
        sha256=sha256_text(source),
        sizes={"full": {}},
    )
