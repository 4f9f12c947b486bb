"""A candidate none of whose extensions compiled: one behaviour, one status."""

from __future__ import annotations

from kernelproof.pysource import compiles_itself
from kernelproof.types import Origin, Status
from kernelproof.types.verification import VerifyRequest
from kernelproof.verifier.referee.ledger import Ended, Ledger

HOWEVER_IT_WENT = (
    *(Status.CORRECT, Status.NO_CUSTOM_KERNEL, Status.LOAD_ERROR, Status.RUNTIME_ERROR),
    *(Status.WRONG_SHAPE, Status.WRONG_DTYPE, Status.WRONG_OUTPUT),
    *(Status.MUTATED_INPUT, Status.NONDETERMINISTIC),
)
"""The statuses that a candidate without its extension may end with."""


def told_once(verdict: Ended, request: VerifyRequest, ledger: Ledger) -> Ended:
    """The build failure, where none of the candidate's builds worked. So the status is the same for every
    program that then computes in another way, rightly or wrongly."""
    failure = ledger.build_failure() if verdict.status in HOWEVER_IT_WENT else None
    if failure is None or has_other_kernels(request, ledger):
        return verdict
    return failure


def has_other_kernels(request: VerifyRequest, ledger: Ledger) -> bool:
    """Whether it has native code of its own without torch's extensions. A CPU does not tell such code."""
    seen = ledger.kernels
    if not compiles_itself(request.source) or seen is None or request.device == "cpu":
        return compiles_itself(request.source)
    return any(launch.origin is Origin.JIT for launch in seen.launches)
