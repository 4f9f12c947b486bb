"""Whose kernels did the work: what a profiler and a dispatcher trace saw in one untimed call."""

from __future__ import annotations

from enum import StrEnum

from pydantic import Field

from kernelproof.types.base import FrozenRecord


class Origin(StrEnum):
    """Whose code a launch ran."""

    OWN = "own"
    """An extension that the candidate built."""
    JIT = "jit"
    """Compiled while it ran, by NVRTC or another compiler that the candidate's source calls."""
    INDUCTOR = "inductor"
    """Made by torch.compile, or by Triton."""
    LIBRARY = "library"
    """ATen, cuBLAS, cuDNN, CUTLASS and the like."""
    COPY = "copy"
    """Copies and fills of memory."""
    UNKNOWN = "unknown"
    """Nothing shows whose it is: it does not count as the candidate's."""


class Launch(FrozenRecord):
    """All launches of one kernel (CUDA), or calls of one function or operator (CPU), in the traced call."""

    name: str
    origin: Origin
    count: int
    ms: float | None = None
    """Device time of all of them together; None where no profiler timed it."""
    threads: int | None = None
    """Threads of a block, in the launch that took longest. This and the next three are None where the
    profiler does not say."""
    blocks: int | None = None
    """Blocks of that launch."""
    registers: int | None = None
    """Registers of a thread."""
    shared_bytes: int | None = None
    """Shared memory of a block."""


class Kernels(FrozenRecord):
    """What ran in one traced call. Seen inside the contestant: a claim (docs/rationale/trust.md)."""

    launches: tuple[Launch, ...] = ()
    operators: tuple[str, ...] = ()
    """Compute operators of torch that were dispatched, e.g. `aten.mm`; views and allocations apart."""
    own_share: float | None = Field(default=None, ge=0, le=1)
    """Share of the device time in launches of origin `own` and `jit`; None where times are not known."""
    replaced_share: float | None = Field(default=None, ge=0, le=1)
    """Share of the reference's time in operators of torch whose work no library does in the candidate; None
    where the reference was not traced, or calls none."""
    replaced_outside_products: float | None = Field(default=None, ge=0, le=1)
    """The same of what is no matrix product and no convolution; None where the reference calls none such."""
    allocations: dict[str, int] = Field(default_factory=dict)
    """Functions of CUDA's that took memory or gave it back in that call, e.g. `cudaMallocAsync`, and how many
    calls of each there were. A call that stays in torch's own pool calls none."""
    trouble: str = ""
    """Why there is no profile, or only a part of one."""
    raised: bool = False
    """Whether that is an exception of the candidate's: its call raises when it is traced, and only then."""

    @property
    def longest_first(self) -> list[Launch]:
        """The launches by their time, those of the same time by their count."""
        return sorted(self.launches, key=lambda launch: (-(launch.ms or 0.0), -launch.count))
