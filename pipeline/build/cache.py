"""The store of builds, addressed by content: `<root>/<key[:2]>/<key>/{lib.so,build.json,log.txt}`.

An entry appears in one step (written aside on the same file system, synced, renamed), so a reader sees
all of it or nothing, whatever is killed when. Locks are `flock`s: they end with the process that holds
them, and none can be left behind.
"""

from __future__ import annotations

import errno
import fcntl
import hashlib
import os
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from uuid import uuid4

from pipeline.build.ninja_file import LIBRARY
from pipeline.nouns.build import Build, BuildState

LASTING = frozenset({BuildState.OK, BuildState.ERROR})
"""States that compiling the same thing again would only repeat; no other state is ever stored."""

_LOCK_POLL_S = 0.05
_SCRATCH_LINK = "scratch"
"""In a workplace: the link to its scratch directory, so that whoever sweeps the one finds the other."""


class LockTimeout(Exception):
    """Another process has been compiling the same thing for too long."""


class BuildCache:
    """Finished builds below `root`, shared by any number of threads and processes."""

    def __init__(self, root: Path) -> None:
        """Makes `root` when it is not there. Raises OSError when it cannot be made or written."""
        self._root = root.resolve()
        for folder in (self._locks, self._workplaces):
            folder.mkdir(parents=True, exist_ok=True)
        self._sweep()

    def load(self, key: str) -> Build | None:
        """The stored build, `cached` set; None when there is none or its files are damaged."""
        entry = self._entry(key)
        try:
            build = Build.model_validate_json((entry / "build.json").read_bytes())
            log = (entry / "log.txt").read_text()
            if build.key != key or build.state not in LASTING:
                return None
            library = None
            if build.state is BuildState.OK:
                library = entry / LIBRARY
                if _file_sha256(library) != build.library_sha256:
                    return None
        except (OSError, ValueError):
            return None
        changes = {"library": str(library) if library else None, "log": log, "cached": True}
        return build.model_copy(update=changes)

    def store(self, build: Build, library: bytes | None) -> Build:
        """Store a lasting build, in place of a damaged entry if there is one; returns it with its paths.

        Call it with the key's lock held. Raises OSError when the disk is full.
        """
        entry = self._entry(build.key)
        with self.workplace() as place:
            staged = place / "entry"
            staged.mkdir()
            kept = build.model_copy(update={"library": None, "log": "", "cached": False})
            if library is not None:
                kept = kept.model_copy(update={"library_sha256": hashlib.sha256(library).hexdigest()})
                _write_synced(staged / LIBRARY, library, mode=0o755)
            _write_synced(staged / "log.txt", build.log.encode())
            _write_synced(staged / "build.json", kept.model_dump_json(indent=1).encode())
            entry.parent.mkdir(exist_ok=True)
            with suppress(FileNotFoundError):
                entry.rename(place / "replaced")
            staged.chmod(0o755)
            staged.rename(entry)
            _sync_folder(entry.parent)
        path = str(entry / LIBRARY) if library is not None else None
        return kept.model_copy(update={"library": path, "log": build.log})

    @contextmanager
    def lock(self, key: str, seconds: float, given_up: Callable[[], bool] = lambda: False) -> Iterator[None]:
        """Hold the right to compile `key`, so that two processes do not do the same work at once.

        Raises LockTimeout when another holds it for all of `seconds`, or until `given_up` says so.
        """
        # One file serves several keys: a file a key would pile up, and deleting lock files is a race.
        descriptor = os.open(self._locks / key[:3], os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            deadline = time.monotonic() + seconds
            while not _try_lock(descriptor):
                if given_up():
                    raise LockTimeout("the work was ended while another process was compiling this")
                if time.monotonic() > deadline:
                    raise LockTimeout(f"another process has been compiling this for {seconds:.0f} s")
                time.sleep(_LOCK_POLL_S)
            yield
        finally:
            os.close(descriptor)

    @contextmanager
    def workplace(self) -> Iterator[Path]:
        """A new empty directory on the cache's file system, removed afterwards.

        Those of killed processes are removed by the next cache that is opened.
        """
        place, descriptor = self._claim_workplace()
        try:
            place.mkdir(mode=0o700)
            yield place
        finally:
            _remove_workplace(place)
            os.close(descriptor)

    @contextmanager
    def scratch(self) -> Iterator[Path]:
        """A new empty directory for a sandbox, removed afterwards, also when this process is killed.

        It lies in the system's directory for temporary files, which every user can reach: a sandbox may
        run under a user id of its own, and the cache may lie in somebody's private home.
        """
        with self.workplace() as place:
            folder = Path(tempfile.gettempdir(), f"kernelproof-build-{uuid4().hex[:16]}")
            (place / _SCRATCH_LINK).symlink_to(folder)
            folder.mkdir(mode=0o700)
            yield folder

    def _claim_workplace(self) -> tuple[Path, int]:
        """A free name and the descriptor whose flock says that its owner lives."""
        while True:
            place = self._workplaces / uuid4().hex[:16]
            descriptor = os.open(_lock_file(place), os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
            # A sweep may take the new file for a dead process's before it is locked: then start over.
            if _try_lock(descriptor) and _lock_file(place).exists():
                return place, descriptor
            os.close(descriptor)

    def _sweep(self) -> None:
        """Remove the workplaces of processes that were killed."""
        for lock_file in self._workplaces.glob("*.lock"):
            try:
                descriptor = os.open(lock_file, os.O_RDWR | os.O_CLOEXEC)
            except OSError:
                continue
            try:
                if _try_lock(descriptor):
                    _remove_workplace(lock_file.with_suffix(""))
            finally:
                os.close(descriptor)

    @property
    def _locks(self) -> Path:
        return self._root / "locks"

    @property
    def _workplaces(self) -> Path:
        return self._root / "partial"

    def _entry(self, key: str) -> Path:
        return self._root / key[:2] / key


def _lock_file(place: Path) -> Path:
    return place.with_name(f"{place.name}.lock")


def _remove_workplace(place: Path) -> None:
    with suppress(OSError):
        shutil.rmtree((place / _SCRATCH_LINK).readlink(), ignore_errors=True)
    shutil.rmtree(place, ignore_errors=True)
    _lock_file(place).unlink(missing_ok=True)


def _try_lock(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        if error.errno in (errno.EWOULDBLOCK, errno.EACCES):
            return False
        raise
    return True


def _file_sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _write_synced(path: Path, data: bytes, mode: int = 0o644) -> None:
    with path.open("wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    path.chmod(mode)


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
