"""The cores that a contestant is held to: set before a candidate is loaded, and not changed by it.

A candidate that takes more cores than the baseline beside it has is faster for that alone. So the system
call that would take them, sched_setaffinity(2), does nothing from then on, in any thread or process that is
started: one more seccomp(2) filter answers it with success.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import platform
import struct
from collections.abc import Iterable
from pathlib import Path

_MACHINES = {"x86_64": (0xC000003E, 203, 317), "aarch64": (0xC00000B7, 122, 277)}
"""The kernel's name of the architecture, and its numbers of sched_setaffinity and seccomp."""
_LOAD, _IF_EQUAL, _RETURN = 0x20, 0x15, 0x06
_ALLOW, _SUCCEED = 0x7FFF0000, 0x00050000
"""The second is SECCOMP_RET_ERRNO with no error."""
_AT_NUMBER, _AT_ARCH = 0, 4
_PR_SET_NO_NEW_PRIVS, _SET_MODE_FILTER, _ALL_THREADS = 38, 1, 1


class _Program(ctypes.Structure):
    _fields_ = [("length", ctypes.c_ushort), ("code", ctypes.c_char_p)]


def hold(cores: Iterable[int]) -> None:
    """All threads of this process, and what they start from now on, run on these cores."""
    cores, held = tuple(cores), set[int]()
    while found := {int(thread.name) for thread in Path("/proc/self/task").iterdir()} - held:
        for thread in found:  # the next look finds what they started before their turn came
            with contextlib.suppress(ProcessLookupError):  # it has ended
                os.sched_setaffinity(thread, cores)
        held |= found


def hold_for_good() -> bool:
    """Nobody in this process changes its cores any more. False where this kernel cannot do that."""
    if platform.machine() not in _MACHINES:
        return False
    architecture, set_affinity, seccomp = _MACHINES[platform.machine()]
    code = b"".join(
        struct.pack("<HBBI", *step)
        for step in (
            (_LOAD, 0, 0, _AT_ARCH),
            (_IF_EQUAL, 0, 3, architecture),  # another: left to the sandbox's own filter
            (_LOAD, 0, 0, _AT_NUMBER),
            (_IF_EQUAL, 0, 1, set_affinity),
            (_RETURN, 0, 0, _SUCCEED),
            (_RETURN, 0, 0, _ALLOW),
        )
    )
    library = ctypes.CDLL(None, use_errno=True)
    library.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
    program = _Program(len(code) // 8, code)
    return bool(library.syscall(seccomp, _SET_MODE_FILTER, _ALL_THREADS, ctypes.byref(program)) == 0)
