"""How a contestant's process starts: its environment, and the program that it runs."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

EVEN_GROUND = {
    # OpenMP threads sleep between parallel regions. The two take turns on the same cores; a thread that
    # spins would hold one that the other side is timed on.
    "OMP_WAIT_POLICY": "passive",
    # Freed memory stays with the process. Otherwise a process that has freed large blocks before (the
    # referee) gets its outputs from warm pages, and a fresh one pays a page fault for every 4 KiB.
    "MALLOC_MMAP_MAX_": "0",
    "MALLOC_TRIM_THRESHOLD_": str(1 << 40),
}
"""Variables that referee and contestant both start with, so that neither is timed on better terms."""
SILENT = "6"
"""For torch's profiler, which else writes to stderr that it begins and ends: no word of the candidate's."""
_SCRIPT = """
import gc, sys, types
gc.disable()
from importlib.util import module_from_spec, spec_from_file_location
for name in ("kernelproof", "kernelproof.verifier"):
    sys.modules[name] = types.ModuleType(name)
    sys.modules[name].__path__ = []
folder = {folder!r}
spec = spec_from_file_location(
    "kernelproof.verifier.contestant", folder + "/__init__.py", submodule_search_locations=[folder]
)
sys.modules[spec.name] = module_from_spec(spec)
spec.loader.exec_module(sys.modules[spec.name])
from kernelproof.verifier.contestant.{runner} import main
main()
"""
"""Finds our one room by its file: some sandboxes do not let a process list the folder that it lies in.

Importing torch makes objects by the hundred thousand, and none of them is garbage: no search before `main`.
"""


def program(folder: Path, runner: str = "main") -> str:
    """The Python program that runs a module of the contestant's package from `folder`."""
    return _SCRIPT.format(folder=str(folder), runner=runner)


def flags_of(runner: str) -> tuple[str, ...]:
    """Python's flags. The stub's runner is told where packages lie: the search for them takes as long as the
    rest of its start."""
    return ("-I", "-B") if runner == "main" else ("-I", "-B", "-S")


def contestant_environment() -> dict[str, str]:
    """The few variables of ours that a contestant needs: where CUDA's libraries are, nothing else."""
    kept = ("LD_LIBRARY_PATH", "CUDA_HOME", "NVIDIA_VISIBLE_DEVICES", "NVIDIA_DRIVER_CAPABILITIES")
    return (
        EVEN_GROUND
        | {"KINETO_LOG_LEVEL": SILENT}
        | {name: os.environ[name] for name in kept if name in os.environ}
    )


def pools_for(cores: Sequence[int]) -> dict[str, str]:
    """Variables by which its libraries start a thread for each core that is kept for it; none: as they like.

    It comes up on other cores, which may be many. With a thread for each of those, all of them would be woken
    on its few whenever it is let go on, while a clock runs.
    """
    return dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"), str(len(cores))) if cores else {}
