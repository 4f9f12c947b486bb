"""Files on both sides of the wall: what Python needs inside, the scratch directory, results read back."""

from __future__ import annotations

import contextlib
import os
import stat
import sys
import uuid
from pathlib import Path

from kernelproof.errors import SandboxError

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
