"""Registers, shared memory and spills of each kernel, read from the lines of `ptxas -v` in a build's log.

The builder asks for that in every build of CUDA sources, so nothing is computed for it on the GPU's time.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from kernelproof.analysis import names
from kernelproof.types import Build, BuildState, FrozenRecord

MOST = 256
"""Kernels of one build that are read."""
_ENTRY = re.compile(r"ptxas info\s*: Compiling entry function '([^'\s]{1,2000})' for 'sm_\w+'")
_PROPERTIES = re.compile(r"ptxas info\s*: Function properties for (\S{1,2000})")
_SPILLS = re.compile(
    r"\s*(\d{1,9}) bytes stack frame, (\d{1,9}) bytes spill stores, (\d{1,9}) bytes spill loads"
)
_USED = re.compile(r"ptxas info\s*: Used (\d{1,4}) registers(?P<rest>.*)")
_SHARED = re.compile(r"(\d{1,9}) bytes smem")


class Resources(FrozenRecord):
    """One kernel as it was compiled for one architecture."""

    name: str
    """`soft<4>`: without namespaces and parameters."""
    registers: int
    """Of a thread."""
    shared_bytes: int
    """Of a block, as far as the compiler knows: what a launch adds is not in it."""
    stack_bytes: int
    """Of a thread: arrays that are not in registers."""
    spill_bytes: int
    """Of a thread: stored because registers ran out."""


def resources(builds: Iterable[Build]) -> tuple[Resources, ...]:
    """The kernels of builds that worked, each once."""
    found = (one for build in builds if build.state is BuildState.OK for one in list(_read(build.log))[:MOST])
    return tuple(dict.fromkeys(found))


def match(name: str, compiled: Iterable[Resources]) -> Resources | None:
    """The kernel to which a profiler gives this name; None where none fits, or several do."""
    spelled = names.of_demangled(name)
    whole = [one for one in compiled if one.name == spelled]
    alike = whole or [one for one in compiled if names.base(one.name) == names.base(spelled)]
    return alike[0] if len(alike) == 1 else None


def _read(log: str) -> Iterator[Resources]:
    entry = described = None
    stack = spills = 0
    for line in log.splitlines():
        if found := _ENTRY.match(line):
            entry, described, stack, spills = found[1], None, 0, 0
        elif found := _PROPERTIES.match(line):
            described = found[1]
        elif (found := _SPILLS.match(line)) and described == entry:
            stack, spills = int(found[1]), int(found[2])
        elif entry is not None and (found := _USED.match(line)):
            shared = _SHARED.search(found["rest"])
            yield Resources(
                name=names.of_mangled(entry),
                registers=int(found[1]),
                shared_bytes=int(shared[1]) if shared else 0,
                stack_bytes=stack,
                spill_bytes=spills,
            )
            entry = None
