"""The cache of builds, addressed by content: `<root>/<key[:2]>/<key>/{lib.so,build.json,log.txt}`.

An entry appears in one step (written aside on the same file system, synced, renamed), so a reader sees all
of it or nothing, whatever is killed when. It goes the same way: renamed into a workplace, then deleted.
Locks are `flock`s: they end with the process that holds them, and none can be left behind.

Beyond a bound the least recently used entries are removed, a tenth of the bound at a time. Those that were
used within the last hour stay until twice the bound is reached: a process may be about to open their
library. A process that finds a library gone asks for the build again. `StoreSize` counts the bytes of all
entries for all processes, so that no build has to walk through them.

`BuildIndex` has the builds of a source. `survey`, `prune` and `clear` are what `kernelproof cache` does.
"""

from __future__ import annotations

import errno
import fcntl
import hashlib
import json
import os
import re
import shutil
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from uuid import uuid4

from kernelproof.errors import MachineError
from kernelproof.types.build import Build, BuildState, CacheSurvey, Removal
from kernelproof.workspace import CACHE_VARIABLE, DEFAULT_CACHE_BYTES, cache_bound

LIBRARY, RECORD, LOG = "lib.so", "build.json", "log.txt"

_BLOCK = 4096
_SHELF, _KEY = re.compile(r"[0-9a-f]{2}"), re.compile(r"[0-9a-f]{64}")

BUILDS = "builds"


@dataclass(frozen=True)
class Entry:
    """One entry, as it was when it was looked at."""

    path: Path
    bytes: int
    """Room on the disk: each file, and the directory, in whole blocks of 4 KiB."""
    used_ns: int
    """When it was stored or last loaded: the record's modification time (the directory's, without one)."""

    @property
    def key(self) -> str:
        """The build's address."""
        return self.path.name


def entries(root: Path) -> list[Entry]:
    """All entries below `root`, least recently used first. A file that is no entry by its name is left
    out."""
    folders = (
        folder
        for ready_builds in _folders(root, _SHELF)
        for folder in _folders(ready_builds, _KEY)
        if folder.name.startswith(ready_builds.name)
    )
    found = (look_at(Path(folder)) for folder in folders)
    return sorted((entry for entry in found if entry is not None), key=lambda e: (e.used_ns, e.key))


def look_at(path: Path) -> Entry | None:
    """The entry at `path`; None when it is gone."""
    room = _BLOCK
    try:
        used = path.stat().st_mtime_ns
        with os.scandir(path) as files:
            for file in files:
                status = file.stat(follow_symlinks=False)
                room += -(-status.st_size // _BLOCK) * _BLOCK
                if file.name == RECORD:
                    used = status.st_mtime_ns
    except OSError:
        return None
    return Entry(path, room, used)


def mark_used(path: Path) -> None:
    """Note that the entry at `path` is used now. Nothing happens where that cannot be written."""
    now = time.time_ns()  # the kernel's own stamps are too coarse to order uses by
    with suppress(OSError):
        os.utime(path / RECORD, ns=(now, now))


def _folders(parent: Path | os.DirEntry[str], name: re.Pattern[str]) -> Iterator[os.DirEntry[str]]:
    try:
        with os.scandir(parent) as found:
            yield from (f for f in found if name.fullmatch(f.name) and f.is_dir(follow_symlinks=False))
    except OSError:
        return


_MOST_BYTES = 1000


@dataclass(frozen=True)
class Count:
    """What is known of the entries' bytes."""

    bytes: int
    """At the last walk, and stored since. A replaced entry counts twice until the next walk."""
    walked_bytes: int
    """At the last walk over all entries."""
    walked_at: float
    """When that was, in seconds since 1970."""


class StoreSize:
    """The count in its file, read and written under a `flock` of microseconds.

    The bytes of an entry are added before it appears, so a process killed in between makes the count too
    high, and the next walk puts it right. A file that is missing or damaged means that nothing is known.
    """

    def __init__(self, path: Path) -> None:
        self._path = path

    def read(self) -> Count | None:
        """The count; None when it is not known."""
        with self._held() as descriptor:
            return _read(descriptor)

    def add(self, count: int) -> Count | None:
        """Adds bytes; the new count, None when it is not known."""
        with self._held() as descriptor:
            known = _read(descriptor)
            if known is None:
                return None
            return _write(descriptor, Count(known.bytes + count, known.walked_bytes, known.walked_at))

    def correct(self, walked: int, before: Count | None) -> Count:
        """Puts in what a walk found. `before`: the count at its start; bytes added since are kept."""
        with self._held() as descriptor:
            known = _read(descriptor)
            added = known.bytes - before.bytes if known is not None and before is not None else 0
            return _write(descriptor, Count(walked + max(added, 0), walked, time.time()))

    @contextmanager
    def _held(self) -> Iterator[int]:
        descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            yield descriptor
        finally:
            os.close(descriptor)


def _read(descriptor: int) -> Count | None:
    try:
        found = json.loads(os.pread(descriptor, _MOST_BYTES, 0))
        return Count(int(found["bytes"]), int(found["walked_bytes"]), float(found["walked_at"]))
    except (ValueError, TypeError, KeyError, OverflowError):
        return None


def _write(descriptor: int, count: Count) -> Count:
    text = json.dumps(asdict(count)).encode()
    os.ftruncate(descriptor, 0)  # a kill after this leaves an empty file: nothing is known then
    os.pwrite(descriptor, text, 0)
    return count


LASTING = frozenset({BuildState.OK, BuildState.ERROR})
"""States that compiling the same thing again would only repeat; no other state is ever stored."""

GRACE_S = 3600.0
"""Entries used within so many seconds are not evicted."""

_CROWDED = 2
"""Beyond so many times the bound they are."""
_FILLED_AGAIN = 0.9
"""Eviction goes down to this part of the bound."""
_WALK_STEP = 0.05
"""While eviction cannot get below the bound, it looks again after so much of it was stored."""
_EVICTION = "evict"
"""The lock of a process that removes entries; no key starts like it."""
_PRUNE_WAIT_S = 60.0
_LOCK_POLL_S = 0.05
_SCRATCH_LINK = "scratch"
"""In a workplace: the link to its scratch directory, so that a sweep of the workplace finds the directory."""


class LockTimeout(Exception):
    """Another process has been compiling the same thing for too long."""


class BuildCache:
    """Finished builds below `root`, shared by any number of threads and processes."""

    def __init__(self, root: Path, *, bound: int = DEFAULT_CACHE_BYTES, grace_s: float = GRACE_S) -> None:
        """Makes `root` when it is not there. Raises OSError when it cannot be made or written.

        `bound`: most bytes of all entries together. `grace_s`: entries used so recently stay nevertheless.
        """
        self._root = root.resolve()
        self._bound, self._grace_s = bound, grace_s
        self._store_size = StoreSize(self._root / "size.json")
        for folder in (self._locks, self._workplaces):
            folder.mkdir(parents=True, exist_ok=True)
        self._sweep()

    def load(self, key: str) -> Build | None:
        """The stored build, `cached` set; None when there is none or its files are damaged.

        The entry counts as used now. Its library may be gone when it is opened, if somebody clears the cache.
        """
        entry = self._entry(key)
        try:
            build = Build.model_validate_json((entry / RECORD).read_bytes())
            log = (entry / LOG).read_text()
            if build.key != key or build.state not in LASTING:
                return None
            library = None
            if build.state is BuildState.OK:
                library = entry / LIBRARY
                if _file_sha256(library) != build.library_sha256:
                    return None
        except (OSError, ValueError):
            return None
        mark_used(entry)
        changes = {"library": str(library) if library else None, "log": log, "cached": True}
        return build.model_copy(update=changes)

    def store(self, build: Build, library: bytes | None) -> Build:
        """Store a lasting build, in place of a damaged entry if there is one; returns it with its paths.

        Others are removed when all together go beyond the bound. Call it with the key's lock held. Raises
        OSError when the disk is full.
        """
        entry = self._entry(build.key)
        with self.workplace() as place:
            staged = place / "entry"
            staged.mkdir()
            kept = build.model_copy(update={"library": None, "log": "", "cached": False})
            if library is not None:
                kept = kept.model_copy(update={"library_sha256": hashlib.sha256(library).hexdigest()})
                _write_synced(staged / LIBRARY, library, mode=0o755)
            _write_synced(staged / LOG, build.log.encode())
            _write_synced(staged / RECORD, kept.model_dump_json(indent=1).encode())
            mark_used(staged)
            crowded = self._count(staged)
            entry.parent.mkdir(exist_ok=True)
            with suppress(FileNotFoundError):
                entry.rename(place / "replaced")
            staged.chmod(0o755)
            staged.rename(entry)
            _sync_folder(entry.parent)
        if crowded:
            self._evict(spare=build.key)
        path = str(entry / LIBRARY) if library is not None else None
        return kept.model_copy(update={"library": path, "log": build.log})

    def prune(self, target: int | None = None, unused_s: float | None = None) -> Removal:
        """Remove entries unused for `unused_s`, then the least recently used until `target` bytes are left.

        Raises OSError when the cache cannot be written, LockTimeout when another process is long at it.
        """
        with self.lock(_EVICTION, _PRUNE_WAIT_S):
            before, found = self._store_size.read(), entries(self._root)
            since_ns = time.time_ns() - unused_s * 1e9 if unused_s is not None else 0
            old = [e for e in found if e.used_ns < since_ns]
            rest = found[len(old) :]  # by age, so the old ones are the first
            excess = sum(e.bytes for e in rest) - target if target is not None else 0
            return self._remove(found, [*old, *_first(rest, excess)], before)

    def _count(self, staged: Path) -> bool:
        """Count what is about to be stored; whether it is time to look for entries to remove."""
        entry = look_at(staged)
        try:
            count = self._store_size.add(entry.bytes if entry else 0)
        except OSError:  # another user's file: processes that can write it count the use
            return False
        if count is None:
            return True
        if count.bytes <= self._bound:
            return False
        stuck = count.walked_bytes > self._bound and 0 <= time.time() - count.walked_at < self._grace_s
        return not stuck or count.bytes - count.walked_bytes > _WALK_STEP * self._bound

    def _evict(self, spare: str) -> None:
        """Count all entries; beyond the bound remove the least recently used. Never an error of the store."""
        with suppress(OSError, LockTimeout), self.lock(_EVICTION, 0.0):
            before, stored = self._store_size.read(), entries(self._root)
            total = sum(e.bytes for e in stored)
            excess = total - int(_FILLED_AGAIN * self._bound) if total > self._bound else 0
            grace_s = self._grace_s if total <= _CROWDED * self._bound else 0.0
            old = [e for e in stored if abs(_age_s(e)) >= grace_s and e.key != spare]
            self._remove(stored, _first(old, excess), before)

    def _remove(self, stored: list[Entry], chosen: list[Entry], before: Count | None) -> Removal:
        """Remove those of the entries `stored` that are `chosen`; count the rest. Hold the lock of eviction.

        An entry that was used since it was looked at stays, as does one that cannot be moved.
        """
        removed: list[Entry] = []
        trouble = ""
        if chosen:
            with self.workplace() as place:
                for entry in chosen:
                    now = look_at(entry.path)
                    if now is None or now.used_ns != entry.used_ns:
                        continue
                    try:
                        entry.path.rename(place / entry.key)
                    except OSError as error:
                        trouble = trouble or f"{entry.path}: {error.strerror}"
                    else:
                        removed.append(entry)
        taken, all_bytes = sum(e.bytes for e in removed), sum(e.bytes for e in stored)
        self._store_size.correct(all_bytes - taken, before)
        return Removal(
            builds=len(removed),
            bytes=taken,
            left_builds=len(stored) - len(removed),
            left_bytes=all_bytes - taken,
            trouble=trouble,
        )

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


def open_cache(cache_dir: Path) -> BuildCache:
    """The builds below a cache directory, bounded by `$KERNELPROOF_CACHE_BYTES`.

    Raises MachineError when they cannot be written, UsageError when the variable is malformed.
    """
    bound = cache_bound()
    try:
        return BuildCache(cache_dir / "builds", bound=bound)
    except OSError as error:
        raise MachineError(
            f"the build cache {cache_dir} cannot be written ({error.strerror}); set {CACHE_VARIABLE}"
        ) from error


def _first(stored: list[Entry], excess: int) -> list[Entry]:
    """As many entries from the start as take at least `excess` bytes."""
    chosen: list[Entry] = []
    for entry in stored:
        if excess <= 0:
            break
        chosen.append(entry)
        excess -= entry.bytes
    return chosen


def _age_s(entry: Entry) -> float:
    """Seconds since the last use; negative when the clock was set back since."""
    return (time.time_ns() - entry.used_ns) / 1e9


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


class BuildIndex:
    """Which builds a source asks for: `<cache>/prebuilt/<hash[:2]>/<hash>` holds their keys, by their
    requests' `content_sha256`. `name`, the hash, is the SHA-256 of source, problem and toolchain.

    An entry saves a run of the candidate that would only show its builds. It is used while the cache holds
    all of these builds, so removing builds never makes an entry wrong.
    """

    def __init__(self, cache_dir: Path) -> None:
        self._root = cache_dir / "prebuilt"

    def keys(self, name: str) -> dict[str, str] | None:
        """The builds of a source, content to key; None without an entry, or with a damaged one."""
        return _keys_in(self._path(name))

    def set(self, name: str, keys: Mapping[str, str]) -> None:
        """Says that a source's extensions are these builds, content to key.

        Raises OSError when the disk is full.
        """
        path = self._path(name)
        path.parent.mkdir(parents=True, exist_ok=True)
        # Only the whole object is JSON, so a reader ignores a part of it.
        path.write_text(json.dumps(dict(keys)))

    def count(self, held: Callable[[str], bool] = lambda _: True) -> int:
        """The number of entries that name only builds which are `held`."""
        return sum(1 for path in self._paths() if _all_held(_keys_in(path), held))

    def remove_all(self) -> int:
        """Removes all entries, and returns their number. Raises OSError where they cannot be removed."""
        return _unlinked(self._paths())

    def remove_stale(self, held: Callable[[str], bool]) -> int:
        """Removes entries that name a build which is not `held`, and damaged ones. Returns their number.

        Raises OSError where they cannot be removed.
        """
        return _unlinked(path for path in self._paths() if not _all_held(_keys_in(path), held))

    def _path(self, name: str) -> Path:
        return self._root / name[:2] / name

    def _paths(self) -> Iterator[Path]:
        return (path for path in self._root.glob("[0-9a-f][0-9a-f]/*") if _KEY.fullmatch(path.name))


def _keys_in(path: Path) -> dict[str, str] | None:
    try:
        keys = json.loads(path.read_text())
    except (OSError, ValueError):
        return None
    if not isinstance(keys, dict) or not all(
        isinstance(key, str) and _KEY.fullmatch(key) for key in keys.values()
    ):
        return None
    return keys


def _all_held(keys: dict[str, str] | None, held: Callable[[str], bool]) -> bool:
    return keys is not None and all(map(held, keys.values()))


def _unlinked(paths: Iterable[Path]) -> int:
    count = 0
    for path in paths:
        with suppress(FileNotFoundError):
            path.unlink()
            count += 1
    return count


def survey(cache_dir: Path) -> CacheSurvey:
    """What lies in the cache; nothing is made or changed. Raises UsageError for a malformed bound."""
    found = entries(cache_dir / BUILDS)
    states = Counter(_state(entry) for entry in found)
    held = {entry.key for entry in found}
    return CacheSurvey(
        path=str(cache_dir),
        builds=len(found),
        bytes=sum(entry.bytes for entry in found),
        bound_bytes=cache_bound(),
        ok=states[BuildState.OK],
        error=states[BuildState.ERROR],
        damaged=states[None],
        oldest_use=_time(found[0]) if found else None,
        newest_use=_time(found[-1]) if found else None,
        toolchains=tuple(sorted(map(_toolchain, (cache_dir / "toolchains").glob("*.json")))),
        prebuilt=BuildIndex(cache_dir).count(held.__contains__),
        folders={
            folder.name: _bytes_below(folder)
            for folder in sorted(cache_dir.glob("*"))
            if folder.name != BUILDS and folder.is_dir()
        },
    )


def prune(cache_dir: Path, *, target: int | None = None, unused_s: float | None = None) -> Removal:
    """Removes builds unused for `unused_s` seconds, then the least recently used beyond `target` bytes.

    With neither, down to the bound. Marks that name a removed build go too. Raises MachineError when the
    cache cannot be written.
    """
    if target is None and unused_s is None:
        target = cache_bound()
    return _removal(cache_dir, target, unused_s)


def clear(cache_dir: Path) -> Removal:
    """Removes all builds and the build index; builds that are being compiled now stay. Raises MachineError
    as `prune` does."""
    return _removal(cache_dir, 0, None, all_marks=True)


def _removal(
    cache_dir: Path, target: int | None, unused_s: float | None, *, all_marks: bool = False
) -> Removal:
    try:
        done = Removal(builds=0, bytes=0, left_builds=0, left_bytes=0)
        if (cache_dir / BUILDS).is_dir():  # a misspelt directory is not made
            done = open_cache(cache_dir).prune(target, unused_s)
        index = BuildIndex(cache_dir)
        if all_marks:
            return done.model_copy(update={"index_entries": index.remove_all()})
        held = {entry.key for entry in entries(cache_dir / BUILDS)}
        return done.model_copy(update={"index_entries": index.remove_stale(held.__contains__)})
    except LockTimeout:
        raise MachineError(
            "another process is removing builds right now; try again when it is done"
        ) from None
    except OSError as error:
        raise MachineError(
            f"the cache {cache_dir} cannot be written ({error.strerror}); set {CACHE_VARIABLE}"
        ) from error


def _state(entry: Entry) -> BuildState | None:
    """The entry's state as its record says; None for a damaged one."""
    try:
        state = BuildState(json.loads((entry.path / RECORD).read_bytes())["state"])
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return state if state in LASTING else None


def _time(entry: Entry) -> str:
    return datetime.fromtimestamp(entry.used_ns / 1e9, UTC).isoformat(timespec="seconds")


def _toolchain(path: Path) -> str:
    try:
        facts: dict[str, Any] = json.loads(path.read_bytes())
        words = [f"torch {facts['torch']}", str(facts["cxx_version"] or "no C++ compiler")]
        words.append(f"nvcc {facts['nvcc_version']}" if facts["nvcc_version"] else "no nvcc")
        return f"{'; '.join(words)} ({facts['python']})"
    except (OSError, ValueError, KeyError, TypeError):
        return f"damaged: {path.name}"


def _bytes_below(folder: Path) -> int:
    """Bytes of the files below a folder, as far as they can be seen; links are not followed."""
    total = 0
    for place, _, names in os.walk(folder):
        for name in names:
            try:
                total += os.lstat(os.path.join(place, name)).st_size  # noqa: PTH118
            except OSError:
                continue
    return total
