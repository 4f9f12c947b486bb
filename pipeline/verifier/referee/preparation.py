"""The referee's preparation, while its first candidate is compiled.

The processes for the first candidates start. The device's ceilings and the A/A spread of the day are
measured, if the cache does not hold them.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from pathlib import Path

import torch

from kernelproof.errors import KernelproofError
from kernelproof.types import VerifySettings
from kernelproof.verifier.contestant.main import configure_torch
from kernelproof.verifier.referee.environment import describe_environment
from kernelproof.verifier.referee.ledger import Ended
from kernelproof.verifier.referee.roofline import ceilings
from kernelproof.verifier.referee.sides import starting
from kernelproof.verifier.referee.timing.sameness import aa_spread
from kernelproof.verifier.referee.warm_state import WarmState
from kernelproof.verifier.sandbox import on_cores

_PARALLEL = 1 << 22
"""Elements enough for torch to use several threads."""


def prepare(
    settings: VerifySettings,
    device: torch.device,
    cache: Path,
    warm: WarmState,
    progress: Callable[[str], None],
    *,
    more: bool,
) -> None:
    """Gets ready for candidates with these settings on a GPU, with cores kept for what is measured.

    `more`: several candidates are likely to come. Failures are ignored here: the candidate's own verification
    meets them again, and reports them.
    """
    environment, pool = describe_environment(device), warm.pool
    if environment.gpu is None:
        return
    with contextlib.suppress(Ended, KernelproofError, torch.OutOfMemoryError):
        if more:
            pool.refill(
                starting.gpus(device), settings.memory_bytes, unsafe=settings.unsafe, count=pool.ahead
            )
        configure_torch(settings.threads, tf32=settings.numerics == "tf32")
        torch.ones(_PARALLEL).sum()  # torch starts its threads now, free to use all cores
        with warm.alone(environment.gpu.uuid, progress), on_cores(pool.shares.measured):
            ceilings.known(device, cache, environment, lambda: aa_spread(settings, device, pool))
