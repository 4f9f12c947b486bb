"""Which files a job may touch, as Landlock rules (landlock(7)). `warden.py` puts them in force."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from pathlib import Path

from kernelproof.verifier.sandbox.bwrap import gpu_nodes
from kernelproof.verifier.sandbox.model import Job
from kernelproof.verifier.sandbox.paths import SYSTEM, SYSTEM_FILES

_CREATE_RULESET = 444
_ASK_VERSION = 1

_RIGHTS = [
    "execute",
    "write_file",
    "read_file",
    "read_dir",
    "remove_dir",
    "remove_file",
    "make_char",
    "make_dir",
    "make_reg",
    "make_sock",
    "make_fifo",
    "make_block",
    "make_sym",
    "refer",
    "truncate",
    "ioctl_dev",
]
_BIT = {name: 1 << place for place, name in enumerate(_RIGHTS)}
_READ = _BIT["execute"] | _BIT["read_file"] | _BIT["read_dir"]
_DEVICE = _BIT["read_file"] | _BIT["write_file"] | _BIT["ioctl_dev"]
_OF_FILES = _BIT["execute"] | _BIT["truncate"] | _DEVICE

_DEVICES = ("/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom")
_TCP = 0b11  # bind, connect
_SCOPES = 0b11  # abstract unix sockets, signals


@dataclass(frozen=True)
class Ruleset:
    """What the kernel is asked to refuse (`files`, `tcp`, `scopes`: bit masks) but for the rules."""

    files: int
    tcp: int
    scopes: int
    rules: tuple[tuple[str, int], ...]
    """(path, rights at and below it)."""


def version() -> int:
    """The kernel's Landlock ABI; 0 where there is none."""
    answer: int = ctypes.CDLL(None, use_errno=True).syscall(_CREATE_RULESET, None, 0, _ASK_VERSION)
    return max(0, answer)


def ruleset(job: Job) -> Ruleset | None:
    """The rules for a job, of what this kernel's ABI can express; None without Landlock."""
    abi = version()
    if abi < 1:
        return None
    handled = (1 << {1: 13, 2: 14, 3: 15, 4: 15}.get(abi, 16)) - 1
    rights: dict[str, int] = {}
    for name in (*SYSTEM, *SYSTEM_FILES, "/proc", *map(str, job.read_only)):
        if Path(name).exists():
            rights[name] = _READ
    for name in _DEVICES:
        rights[name] = _DEVICE
    if job.gpus:
        rights["/sys"] = _READ
        rights["/proc"] = _READ | _BIT["write_file"] | _BIT["truncate"]  # cuInit fails with read alone
        rights |= dict.fromkeys(gpu_nodes(job), _DEVICE)
    rights[str(job.scratch)] = handled
    return Ruleset(
        files=handled,
        tcp=_TCP if abi >= 4 else 0,
        scopes=_SCOPES if abi >= 6 else 0,
        rules=tuple(
            (name, allowed & handled & (-1 if Path(name).is_dir() else _OF_FILES))
            for name, allowed in rights.items()
        ),
    )
