"""The analysis of one verification: the bottleneck, and the resources of each kernel that ran."""

from __future__ import annotations

from kernelproof.analysis.bottleneck import Bottleneck, Occupancy, bottleneck, occupancy
from kernelproof.analysis.resources import Resources, match, resources
from kernelproof.types import FrozenRecord, Launch, Verification


class KernelFacts(FrozenRecord):
    """One kernel that ran, with its resources; None where nothing says."""

    launch: Launch
    registers: int | None
    shared_bytes: int | None
    """Bytes of a block, as launched; as compiled, where the launch does not say."""
    spill_bytes: int | None
    stack_bytes: int | None
    occupancy: Occupancy | None


class Analysis(FrozenRecord):
    """The bottleneck of a program, and the resources of its kernels."""

    bottleneck: Bottleneck | None
    kernels: tuple[KernelFacts, ...]
    """Those that took longest come first."""


def analyse(verification: Verification) -> Analysis:
    """The bottleneck and the kernels of a verification. Nothing is run."""
    v = verification
    compiled = resources(v.builds)
    gpu = v.environment.gpu if v.environment is not None else None
    return Analysis(
        bottleneck=bottleneck(v.measurement, v.kernels, v.environment) if v.measurement else None,
        kernels=tuple(
            _facts(launch, match(launch.name, compiled), gpu.capability if gpu else None)
            for launch in (v.kernels.longest_first if v.kernels is not None else ())
        ),
    )


def _facts(launch: Launch, compiled: Resources | None, capability: str | None) -> KernelFacts:
    registers = compiled.registers if compiled is not None else launch.registers
    shared = launch.shared_bytes
    if shared is None and compiled is not None:
        shared = compiled.shared_bytes
    held = None
    if capability is not None and launch.threads is not None and registers is not None:
        held = occupancy(capability, launch.threads, registers, shared or 0)
    return KernelFacts(
        launch=launch,
        registers=registers,
        shared_bytes=shared,
        spill_bytes=compiled.spill_bytes if compiled is not None else None,
        stack_bytes=compiled.stack_bytes if compiled is not None else None,
        occupancy=held,
    )
