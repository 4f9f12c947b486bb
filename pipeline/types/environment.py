"""The machine: software and devices, shares of cores, GPUs under quarantine, and diagnoses of `doctor`."""

from __future__ import annotations

from kernelproof.hashing import sha256_json
from kernelproof.types.record import FrozenRecord


class GpuInfo(FrozenRecord):
    """One GPU as NVML describes it; None where the driver does not say."""

    index: int
    name: str
    uuid: str
    capability: str
    """Compute capability, `9.0`."""
    memory_bytes: int
    sm_count: int
    l2_bytes: int
    board: str | None = None
    """The board's part number: GPUs of one name are built with memory that is not equally fast."""
    vbios: str | None = None
    ecc: bool | None = None
    mig: bool | None = None
    power_limit_w: float | None = None
    max_sm_clock_mhz: int | None = None


class Environment(FrozenRecord):
    """Where a verification ran."""

    kernelproof: str
    python: str
    torch: str
    cuda: str | None = None
    """The CUDA version torch was built with."""
    driver: str | None = None
    nvcc: str | None = None
    cxx: str | None = None
    """First line of `c++ --version`."""
    platform: str
    """Kernel and C library."""
    cpu: str
    """Processor model."""
    cores: int
    """Logical cores this process may use."""
    memory_bytes: int
    host_sha256: str
    """Hash of the host's machine id: tells machines apart without naming them."""
    gpu: GpuInfo | None = None

    @property
    def fingerprint(self) -> str:
        """Equal for environments whose times may be compared directly."""
        return sha256_json(self.model_dump(mode="json"))

    @property
    def device_name(self) -> str:
        """What a leaderboard calls this: the GPU's name, else the CPU's."""
        return self.gpu.name if self.gpu else self.cpu

    def differences(self, other: Environment) -> dict[str, tuple[object, object]]:
        """Fields in which two environments differ, as field -> (this, other); GPU fields as `gpu.name`."""
        mine, theirs = _flat(self), _flat(other)
        return {
            k: (mine.get(k), theirs.get(k)) for k in sorted(mine | theirs) if mine.get(k) != theirs.get(k)
        }


def _flat(environment: Environment) -> dict[str, object]:
    out: dict[str, object] = {}
    for key, value in environment.model_dump(mode="json").items():
        if key == "gpu" and isinstance(value, dict):
            out.update({f"gpu.{k}": v for k, v in value.items()})
        else:
            out[key] = value
    return out


class CoreShares(FrozenRecord):
    """The cores of one GPU's measurements, and those of everything else. Empty: all share all."""

    measured: tuple[int, ...] = ()
    """Cores of the process that is timed. Nothing else starts on them."""
    referee: tuple[int, ...] = ()
    """Of the referee while it times: it waits awake."""
    others: tuple[int, ...] = ()
    """Cores of compilers, imports, and the processes that start for the next candidate."""


class Quarantine(FrozenRecord):
    """A GPU that must not be used: it failed its canary. Kept as a file until the canary passes again."""

    uuid: str
    """The GPU, as the driver names it: `GPU-...`."""
    reason: str
    """What the canary saw, and after what it was run."""
    since: str
    """UTC, ISO 8601."""
    pid: int
    """The process that found out."""


class Diagnosis(FrozenRecord):
    """What was looked at, what was seen, and what to do about it."""

    name: str
    ok: bool
    seen: str
    remedy: str = ""
    """How to get it, when it is missing."""
    essential: bool = False
    """Without it nothing can be verified here."""
