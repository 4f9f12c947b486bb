"""Scratch directories that do not outlast their owner, even one that was killed.

The owner holds a lock on the directory, which the kernel releases however the owner ends; the next one to
`sweep` removes the directories that nobody holds.
"""

from __future__ import annotations

import fcntl
import os
import tempfile
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Self

from kernelproof.errors import SandboxError
from kernelproof.verifier.sandbox import slots
from kernelproof.verifier.sandbox.paths import remove_scratch

PREFIX = "kernelproof-scratch-"


class Scratch:
    """A new empty directory for one job, below the system's directory for temporary files."""

    def __init__(self) -> None:
        """Raises SandboxError when it cannot be made."""
        while True:
            try:
                self.path = Path(tempfile.mkdtemp(prefix=PREFIX))
            except OSError as error:
                raise SandboxError(
                    f"No directory can be made in {tempfile.gettempdir()}: {error}."
                ) from error
            lock = _lock(self.path)
            # A sweep may take the new directory for a dead owner's before it is locked: then start over.
            if lock is not None and self.path.exists():
                self._lock: int | None = lock
                return
            if lock is not None:
                os.close(lock)

    def remove(self) -> None:
        """Removes it with all it holds; nothing of the job may run any more. Safe to call twice."""
        if self._lock is None:
            return
        try:
            with suppress(OSError):  # the next sweep tries again
                remove_scratch(self.path)
        finally:
            os.close(self._lock)
            self._lock = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.remove()


def sweep() -> None:
    """Removes the scratch directories whose owners are gone."""
    for path in Path(tempfile.gettempdir()).glob(f"{PREFIX}*"):
        lock = _lock(path)
        if lock is None:
            continue
        try:
            with suppress(OSError):
                if _ours(os.fstat(lock).st_uid):
                    remove_scratch(path)
        finally:
            os.close(lock)


def _ours(owner: int) -> bool:
    """Whether a directory is our user's, or of a job that root gave a user id of its own.

    Another user could swap links under a removal by root.
    """
    job = range(slots.FIRST, slots.FIRST + slots.COUNT)
    return owner == os.geteuid() or (os.geteuid() == 0 and owner in job)


def _lock(path: Path) -> int | None:
    """A descriptor that holds the directory; None when it is not there, not ours to open, or held."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(descriptor)
        return None
    return descriptor
