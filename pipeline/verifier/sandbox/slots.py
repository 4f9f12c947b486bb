"""User ids for jobs that root starts: one for each running job, held by no other kernelproof process.

The range lies in the part that systemd's UID table leaves unused, below its dynamic users. An id is held
by a bound abstract unix socket, which the kernel releases however the holder ends.
"""

from __future__ import annotations

import os
import pwd
import random
import socket
from pathlib import Path

from kernelproof.errors import SandboxError
from kernelproof.verifier.sandbox.model import Tier

FIRST, COUNT = 60_800, 256


class Slot:
    """A user id (and group id, the same number) held until `release`."""

    def __init__(self, uid: int, lock: socket.socket) -> None:
        self.uid = uid
        self._lock = lock

    def release(self) -> None:
        self._lock.close()


def needed(tier: Tier) -> bool:
    """Whether a job of this tier gets a user id of its own: always when root starts it."""
    return tier in (Tier.A, Tier.C1) or (tier is Tier.D and os.geteuid() == 0)


def exist() -> bool:
    """Whether this user namespace has the user ids: one that maps its own root only, say, has not."""
    for line in Path("/proc/self/uid_map").read_text().splitlines():
        first, _, count = map(int, line.split())
        if first <= FIRST and first + count >= FIRST + COUNT:
            return True
    return False


def take() -> Slot:
    """Holds a free user id. Raises `SandboxError` when all are taken."""
    taken = {entry.pw_uid for entry in pwd.getpwall()} | _running()
    for uid in random.sample(range(FIRST, FIRST + COUNT), COUNT):
        if uid in taken:
            continue
        lock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            lock.bind(f"\0kernelproof-uid-{uid}")
        except OSError:
            lock.close()
            continue
        return Slot(uid, lock)
    raise SandboxError(f"All {COUNT} sandbox user ids from {FIRST} are in use: run fewer jobs at once.")


def _running() -> set[int]:
    """User ids of the processes that can be seen: one left over from a lost job is not used again."""
    uids = set()
    with os.scandir("/proc") as entries:
        for entry in entries:
            if entry.name.isdigit():
                try:
                    uids.add(entry.stat().st_uid)
                except OSError:
                    continue
    return uids
