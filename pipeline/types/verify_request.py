"""What the orchestrator asks of a referee."""

from __future__ import annotations

from kernelproof.backends import backend
from kernelproof.types import Problem, VerifySettings
from kernelproof.types.base import FrozenRecord


class VerifyRequest(FrozenRecord):
    """One candidate to judge."""

    problem: Problem
    source: str
    """The candidate's source."""
    settings: VerifySettings
    device: str
    """`cuda:0` or `cpu`."""
    first_calls: str | None = None
    """The file with what compilers left that run at a kernel's first call; None: there is none."""
    compiled_ahead: bool = False
    """Whether that is all that a first call compiles, as far as is known."""

    @property
    def long_first_call(self) -> bool:
        """Whether a process's first call may be long: kernels are compiled in it, or tuned."""
        first = backend(self.settings.backend).first_call
        return first is not None and (not self.compiled_ahead or first.tunes(self.source))

    @property
    def interpreted(self) -> bool:
        """Whether its kernels are interpreted, for there is no GPU."""
        return self.device == "cpu" and backend(self.settings.backend).on_gpu
