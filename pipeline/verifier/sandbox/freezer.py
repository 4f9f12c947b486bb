"""A control group for one job, by which the kernel holds it still: cgroup v2's freezer (cgroup-v2.rst).

A frozen process runs no instruction of its own until it is thawed, whatever signals reach it, and the
processes that it starts are in the same group. It takes a writable cgroup v2 hierarchy, which containers
seldom have.
"""

from __future__ import annotations

import contextlib
import functools
import itertools
import os
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Self

_PREFIX = "kernelproof-job-"
_numbers = itertools.count()


class Freezer:
    """One job's control group. `close` removes it, once nothing of the job is left."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._freeze, self._events = str(folder / "cgroup.freeze"), str(folder / "cgroup.events")

    @classmethod
    def of(cls, pids: Iterable[int]) -> Self | None:
        """A new group with these processes in it; None where there is none to be had."""
        parent = _parent()
        if parent is None:
            return None
        folder = parent / f"{_PREFIX}{os.getpid()}-{next(_numbers)}"
        try:
            folder.mkdir()
            made = cls(folder)
        except OSError:
            return None
        try:
            for pid in pids:
                (folder / "cgroup.procs").write_text(str(pid))
        except OSError:
            made.close()
            return None
        return made

    def freeze(self, deadline: float) -> bool:
        """Holds all that is in the group; False when some of it still runs at the deadline (monotonic)."""
        _write(self._freeze, b"1")
        while b"frozen 1" not in _read(self._events):
            if time.monotonic() > deadline:
                return False
            time.sleep(0.00005)
        return True

    def thaw(self) -> None:
        """Lets the group go on."""
        with contextlib.suppress(OSError):  # the job is over
            _write(self._freeze, b"0")

    def pids(self) -> set[int]:
        """The processes in the group now."""
        try:
            return set(map(int, _read(str(self._folder / "cgroup.procs")).split()))
        except OSError:  # the job is over, and its group removed
            return set()

    def close(self) -> None:
        """Removes the group. A group that still has processes in it stays."""
        with contextlib.suppress(OSError):
            self._folder.rmdir()


def offered() -> bool:
    """Whether this process can make such groups here."""
    return _parent() is not None


@functools.cache
def _parent() -> Path | None:
    """The group of this process, if groups can be made and processes be moved within it: found by doing."""
    try:
        own = _own_folder()
        if own is None:
            return None
        _sweep(own)
        trial = own / f"{_PREFIX}{os.getpid()}-trial"
        trial.mkdir()
    except OSError:
        return None
    try:
        able = os.access(own / "cgroup.procs", os.W_OK) and (trial / "cgroup.freeze").exists()
        return own if able else None
    finally:
        trial.rmdir()


def _own_folder() -> Path | None:
    """Where this process's group lies, by /proc/self/cgroup and /proc/self/mountinfo (proc(5))."""
    lines = Path("/proc/self/cgroup").read_text().splitlines()
    group = next((line.removeprefix("0::") for line in lines if line.startswith("0::")), None)
    for line in Path("/proc/self/mountinfo").read_text().splitlines():
        before, _, after = line.partition(" - ")
        if group is not None and after.split()[:1] == ["cgroup2"]:
            root, place = before.split()[3:5]
            if Path(group).is_relative_to(root):
                return Path(place) / Path(group).relative_to(root)
    return None


def _sweep(folder: Path) -> None:
    """Removes groups of harnesses that were killed before they could."""
    for old in folder.glob(f"{_PREFIX}*"):
        owner = old.name.removeprefix(_PREFIX).partition("-")[0]
        if not Path("/proc", owner).exists():
            with contextlib.suppress(OSError):
                old.rmdir()


def _read(path: str) -> bytes:
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        return os.read(descriptor, 1 << 16)
    finally:
        os.close(descriptor)


def _write(path: str, data: bytes) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CLOEXEC)
    try:
        os.write(descriptor, data)
    finally:
        os.close(descriptor)
