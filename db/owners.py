"""Which process holds a lease, and whether it is still there.

An owner is `MACHINE:PROCESS:STARTED:TOKEN`. Two processes of one boot of one machine, in one namespace of
process numbers, have the same MACHINE. Each of them can see whether the other is gone. Of every other owner
only the lease says.
"""

from __future__ import annotations

import functools
import secrets
from contextlib import suppress
from pathlib import Path

import psutil

from kernelproof.hashing import sha256_text

_STARTED_TOLERANCE_S = 2.0
"""psutil computes the moment of a start from the boot time, which a corrected clock moves a little."""


def new_owner() -> str:
    """An owner's name for this process, different each time."""
    process = psutil.Process()
    return f"{_machine()}:{process.pid}:{process.create_time():.2f}:{secrets.token_hex(4)}"


def is_gone(owner: str) -> bool:
    """True when the owner was a process of this machine and ended; False for all that cannot be known."""
    machine, _, rest = owner.partition(":")
    number, _, rest = rest.partition(":")
    if machine != _machine() or not number.isdecimal():
        return False
    try:
        process = psutil.Process(int(number))
        if process.status() == psutil.STATUS_ZOMBIE:
            return True
        return bool(abs(process.create_time() - float(rest.partition(":")[0])) > _STARTED_TOLERANCE_S)
    except psutil.NoSuchProcess:
        return True
    except (psutil.Error, ValueError):
        return False


@functools.cache
def _machine() -> str:
    facts = []
    with suppress(OSError):
        facts.append(Path("/proc/sys/kernel/random/boot_id").read_text())
        facts.append(str(Path("/proc/self/ns/pid").readlink()))
    return sha256_text("|".join(facts))[:16] if len(facts) == 2 else f"unknown-{secrets.token_hex(8)}"
