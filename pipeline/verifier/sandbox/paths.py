"""Files on both sides of the wall: what Python needs inside, scratch directories, results read back.

A scratch directory does not outlast its owner, even one that was killed. The owner holds a lock on it, which
the kernel releases however the owner ends; the next one to `sweep` removes the directories that nobody
holds.

`require_readable` checks whether the user that root's jobs run as may read what a job is shown. Example:
root clones into `/root/kernelproof`, and `/root` has mode 0700. A job of root runs as user 60800 to 61055.
In tier A bwrap makes the directories above a path anew, so only the path itself has to be open. In tiers C1
and D the job walks through the real ones, so those have to be open too.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import shlex
import stat
import sys
import tempfile
import uuid
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Self

from kernelproof.errors import SandboxError
from kernelproof.verifier.sandbox.model import Job, Tier
from kernelproof.verifier.sandbox.tree import FIRST_UID, UID_COUNT, needs_slot

SYSTEM = ("/usr", "/lib", "/lib64", "/lib32", "/libx32", "/bin", "/sbin")
"""Visible in every sandbox, with the two files below."""
SYSTEM_FILES = ("/etc/ld.so.cache", "/etc/alternatives")


def python_paths() -> tuple[Path, ...]:
    """What a job must see for `sys.executable` and its installed packages to run inside.

    The parts of the virtual environment and of the base installation (each by every name that links on the
    way use), and those directories of `sys.path` that hold torch or numpy. Not the root of a prefix itself,
    which may be somebody's project. Paths that every sandbox shows anyway are left out.
    """
    prefixes = [
        Path(prefix) for prefix in (sys.prefix, sys.base_prefix, sys.exec_prefix, sys.base_exec_prefix)
    ]
    prefixes += [hop.parent.parent for hop in _links(Path(sys.executable))]
    parts = [
        prefix / part for prefix in prefixes for part in ("bin", "lib", "lib64", "include", "pyvenv.cfg")
    ]
    parts += [
        Path(entry)
        for entry in sys.path
        if entry and any((Path(entry) / package).is_dir() for package in ("torch", "numpy"))
    ]
    found: dict[Path, None] = {}
    for part in parts:
        for name in (_plain(part), part.resolve()):
            if name.exists() and not any(name.is_relative_to(top) for top in SYSTEM):
                found[name] = None
    return tuple(
        path for path in found if not any(path != other and path.is_relative_to(other) for other in found)
    )


def _plain(path: Path) -> Path:
    """Absolute and without `..`, but with its links."""
    return Path(os.path.normpath(path.absolute()))


def _links(path: Path) -> list[Path]:
    """`path` and each target on the way to the real file."""
    chain = [path]
    while chain[-1].is_symlink() and len(chain) < 40:
        chain.append(_plain(chain[-1].parent / chain[-1].readlink()))
    chain.append(path.resolve())
    return chain


def prepare_scratch(scratch: Path, owner: int | None) -> None:
    """Makes the directory private (0700) and, with `owner`, hands it and all it holds to that user id.

    Links are not followed, and a file with a second name is left alone: its content is not ours to give.
    Raises `SandboxError` when the directory is not there or is not ours.
    """
    try:
        if not stat.S_ISDIR(scratch.lstat().st_mode):
            raise SandboxError(f"The scratch path {scratch} is not a directory.")
        scratch.chmod(0o700)
        if owner is not None:
            _give(scratch, owner)
    except OSError as problem:
        raise SandboxError(f"The scratch directory {scratch} cannot be prepared: {problem}.") from problem


def _give(top: Path, owner: int) -> None:
    todo = [top]
    while todo:
        directory = todo.pop()
        os.chown(directory, owner, owner, follow_symlinks=False)
        with os.scandir(directory) as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    todo.append(Path(entry.path))
                elif entry.stat(follow_symlinks=False).st_nlink == 1:
                    os.chown(entry.path, owner, owner, follow_symlinks=False)


def remove_scratch(scratch: Path) -> None:
    """Removes the directory and all it holds, whatever names, modes and depth a job left there.

    Follows no link. Directories are moved up to the top before they are emptied, so that no path grows too
    long. Nothing of the job may run any more. Raises `OSError` when something cannot be removed.
    """
    with contextlib.suppress(FileNotFoundError):
        scratch.chmod(0o700)
        waiting = _empty(scratch, scratch, [])
        while waiting:
            directory = waiting.pop()
            directory.chmod(0o700)
            _empty(directory, scratch, waiting)
            directory.rmdir()
        scratch.rmdir()


def _empty(directory: Path, top: Path, waiting: list[Path]) -> list[Path]:
    """Unlinks the files of `directory` and moves its directories to `top`, adding them to `waiting`."""
    with os.scandir(directory) as listing:
        entries = list(listing)
    for entry in entries:
        if entry.is_dir(follow_symlinks=False):
            Path(entry.path).chmod(0o700)  # a directory that is not writable cannot be moved
            waiting.append(Path(entry.path).rename(top / f"removed-{uuid.uuid4().hex}"))
        else:
            Path(entry.path).unlink()
    return waiting


def read_result(scratch: Path, name: str, max_bytes: int) -> bytes:
    """Reads a file that a job left in its scratch directory.

    Only a regular file with one name, of at most `max_bytes` bytes, directly in the directory, and no link.
    Raises `OSError` when it is not there or cannot be opened so, `ValueError` when it is not such a file.
    """
    if "/" in name or name in ("", ".", ".."):
        raise ValueError(f"{name!r} is not the name of a file")
    directory = os.open(scratch, os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
        descriptor = os.open(name, flags, dir_fd=directory)
    finally:
        os.close(directory)
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode) or status.st_nlink != 1:
            raise ValueError(f"{name!r} is not a regular file with one name")
        if status.st_size > max_bytes:
            raise ValueError(f"{name!r} has {status.st_size} bytes, more than {max_bytes}")
        with os.fdopen(descriptor, "rb", closefd=False) as file:
            content = file.read(max_bytes + 1)
    finally:
        os.close(descriptor)
    if len(content) > max_bytes:
        raise ValueError(f"{name!r} grew past {max_bytes} bytes while it was read")
    return content


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
    job = range(FIRST_UID, FIRST_UID + UID_COUNT)
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


_READ, _ENTER = 0o4, 0o1


class ClosedToJobs(SandboxError):
    """A job of root may not read what it needs. The message names the command that opens it."""


def require_readable(job: Job, tier: Tier) -> None:
    """Raises `ClosedToJobs` when root's job in this tier could not read the paths that it is shown.

    Looks at the permissions for "others": a job's user owns none of these paths, and is in no group.
    """
    if not needs_slot(tier):
        return  # the job runs as the caller, who reads what the caller may read
    closed = [path for path in job.read_only if not _open_to_all(path)]
    ways = {} if tier is Tier.A else dict(_closed_ways((*job.read_only, job.scratch)))
    if not closed and not ways:
        return
    told = [f"may not enter {way}, where {path} lies" for way, path in ways.items()]
    more = f" and {len(closed) - 1} more" if len(closed) > 1 else ""
    told += [f"may not read {closed[0]}{more}"] if closed else []
    commands = [f"chmod o+x {_quoted(ways)}"] if ways else []
    commands += [f"chmod -R o+rX {_quoted(closed)}"] if closed else []
    raise ClosedToJobs(
        f"Root's jobs run as a user of their own, who {'; who '.join(told)}. "
        f"Run `{' && '.join(commands)}`, or choose a place that every user may read."
    )


def _open_to_all(path: Path) -> bool:
    mode = path.stat().st_mode
    needed = _READ | _ENTER if stat.S_ISDIR(mode) else _READ
    return mode & needed == needed


def _closed_ways(paths: Iterable[Path]) -> Iterator[tuple[Path, Path]]:
    """Each directory above a path that others may not enter, with that path."""
    for path in reversed(list(paths)):  # of two paths below one directory, the first is named
        for way in path.parents:
            if not way.stat().st_mode & _ENTER:
                yield way, path


def _quoted(paths: Iterable[Path]) -> str:
    return " ".join(shlex.quote(str(path)) for path in paths)
