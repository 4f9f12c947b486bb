"""Which backend and size preset a run uses, before anything is started or stored."""

from __future__ import annotations

from collections.abc import Sequence

from kernelproof import backends
from kernelproof.errors import UsageError
from kernelproof.types import Problem
from kernelproof.verifier.devices.discovery import device_for, gpus, interprets
from kernelproof.wording import counted


def choose_size(requested: str | None, backend: str, problems: Sequence[Problem]) -> str:
    """`requested`, else full on a GPU, and small on a CPU or where kernels are interpreted.

    It is full as well where no problem has a small one.

    Raises UsageError naming the problems that lack the size.
    """
    size = requested or _default(backend)
    lacking = [problem for problem in problems if size not in sizes_of(problem)]
    if not lacking:
        return size
    if not requested and len(lacking) == len(problems):
        return "full"
    named = "; ".join(f"{problem.id} has {', '.join(sizes_of(problem))}" for problem in lacking[:5])
    more = f"; and so for {counted(len(lacking) - 5, 'more problem')}" if len(lacking) > 5 else ""
    raise UsageError(f"no size {size!r}: {named}{more}; choose with --size, or leave these problems out")


def only_built(sources: Sequence[str]) -> str | None:
    """The backend on a GPU that most of these programs are written for, where they cannot run here.

    None where the default backend is the one to judge them with.
    """
    if not sources or gpus():
        return None
    able = (each for each in backends.our_backends() if each.is_installed and device_for(each.name) is None)
    written = (each for each in able if 2 * sum(map(each.holds_own_code, sources)) >= len(sources))
    return next((each.name for each in written), None)


def _default(backend: str) -> str:
    chosen = backends.backend(backend)
    if chosen.first_call is not None and interprets(backend):
        return chosen.first_call.interpreted_size
    return chosen.default_size


def sizes_of(problem: Problem) -> tuple[str, ...]:
    """The problem's presets; a file that declares none has `full`, the sizes it is written with."""
    return tuple(problem.sizes) or ("full",)
