"""Artefacts: the build stage of a candidate, carried from the machine that built it to the one that judges.

An artefact is an entry of an `ArtefactStore`: bytes by key, in a directory that machines share, or in what
fsspec reaches, such as `s3://BUCKET/FOLDER`. It holds a line of JSON, and the shared libraries that it names.
The JSON is read by pydantic alone, and a library is loaded by the candidate's own sandboxed process.

An entry begins with the SHA-256 of its content. So half of one is never used, nor a damaged one, and the next
`put` replaces it. Entries may be removed at any time. Whoever may write here is trusted as builders are.
"""

from __future__ import annotations

import hashlib
import os
import re
import time
import uuid
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from kernelproof.backends import backend
from kernelproof.errors import KernelproofError, MachineError, UsageError, install_command
from kernelproof.hashing import sha256_json, sha256_text
from kernelproof.types import Build, BuildState, FrozenRecord, Problem, Removal, SandboxReport, VerifySettings
from kernelproof.verifier.build import Toolchain
from kernelproof.verifier.engine.build_stage import BuildStage, Prebuilt
from kernelproof.wording import encodable
from kernelproof.workspace import user_path

ENTRY_BYTES = 1 << 30
"""Most bytes of an entry's content."""
RECENT_S = 3600.0
"""Entries that were written within so many seconds are not pruned: their judges come soon."""
_SEAL = 65
"""Bytes of the hash and the end of its line."""
_FILE = "file://"
_SECRET = re.compile(r"(?<=://)[^/@]*@|\?.*")
_NAME = re.compile(r"[0-9a-f]{64}(\.[0-9a-f]{32})?")
"""A key; with more after it in a directory, a file of a builder that was killed while it wrote."""
_TIMES = ("LastModified", "last_modified", "mtime", "updated", "modified", "created")
"""Where file systems of fsspec say when a file was written."""


class StoreAway(MachineError):
    """The store cannot be reached, read or written."""


@dataclass(frozen=True)
class Entry:
    path: str
    bytes: int
    written: float
    """Unix time, by the store's clock."""


class ArtefactStore(ABC):
    """Bytes by key: 64 hexadecimal digits. Thread-safe. Every method raises StoreAway."""

    def __init__(self, name: str, root: str) -> None:
        self._name, self._root = name, root

    def put(self, key: str, content: bytes) -> None:
        """Stores an entry in one step, in place of an older one."""
        with self._explained():
            self._write(self._path(key), hashlib.sha256(content).hexdigest().encode() + b"\n" + content)

    def get(self, key: str) -> bytes | None:
        """The content of an entry; None where there is none, or only a damaged one."""
        with self._explained():
            try:
                data = self._read(self._path(key), _SEAL + ENTRY_BYTES + 1)
            except FileNotFoundError:
                return None
        seal, content = data[:_SEAL], data[_SEAL:]
        whole = len(content) <= ENTRY_BYTES and seal == hashlib.sha256(content).hexdigest().encode() + b"\n"
        return content if whole else None

    def entries(self) -> list[Entry]:
        """All that builders put here, and what killed ones left. Files of others are left out."""
        with self._explained():
            return [
                Entry(path, size, written)
                for path, size, written in self._files()
                if _NAME.fullmatch(name := path.rpartition("/")[2])
                and path.strip("/") == self._path(name).strip("/")
            ]

    def prune(self, *, unused_s: float | None = None, target: int | None = None) -> Removal:
        """Removes entries written more than `unused_s` seconds ago, then the oldest until `target` bytes are
        left. Those written within RECENT_S stay. Two may prune at once."""
        entries = sorted(self.entries(), key=lambda each: each.written)
        now, left = time.time(), sum(each.bytes for each in entries)
        removed, trouble = list[Entry](), ""
        for each in entries:
            age = now - each.written
            old = unused_s is not None and age >= unused_s
            if age < RECENT_S or not (old or (target is not None and left > target)):
                continue
            try:
                with self._explained(), suppress(FileNotFoundError):
                    self._remove(each.path)
            except StoreAway as error:
                trouble = str(error)
                break
            removed.append(each)
            left -= each.bytes
        count = len(removed)
        return Removal(
            builds=count,
            bytes=sum(each.bytes for each in removed),
            left_builds=len(entries) - count,
            left_bytes=left,
            trouble=trouble,
        )

    def _path(self, key: str) -> str:
        return f"{self._root}/{key[:2]}/{key}"

    @contextmanager
    def _explained(self) -> Iterator[None]:
        try:
            yield
        except KernelproofError:
            raise
        except Exception as error:  # each file system has errors of its own
            why = getattr(error, "strerror", None) or str(error).partition("\n")[0] or type(error).__name__
            raise StoreAway(f"the artefact store {self._name} cannot be used: {why}") from error

    @abstractmethod
    def _read(self, path: str, most: int) -> bytes:
        """The first bytes of a file. Raises FileNotFoundError."""

    @abstractmethod
    def _write(self, path: str, data: bytes) -> None:
        """Writes a file in one step, as far as the file system can."""

    @abstractmethod
    def _files(self) -> Iterator[tuple[str, int, float]]:
        """Paths of files, their bytes, and the Unix times when they were written."""

    @abstractmethod
    def _remove(self, path: str) -> None:
        """Removes a file. Raises FileNotFoundError where there is none and the store says so."""


class Directory(ArtefactStore):
    """A directory: on this machine, or on a file system that several machines mount."""

    def __init__(self, root: str, *, create: bool = True) -> None:
        """Makes it where it is not there, unless told otherwise. Raises StoreAway, UsageError."""
        super().__init__(root, root)
        with self._explained():
            if create:
                Path(root).mkdir(parents=True, exist_ok=True)
            elif not Path(root).is_dir():
                raise UsageError(f"there is no directory {root}; --artefacts names where builders publish")

    def _read(self, path: str, most: int) -> bytes:
        with Path(path).open("rb") as file:
            return file.read(most)

    def _write(self, path: str, data: bytes) -> None:
        Path(path).parent.mkdir(exist_ok=True)
        partial = Path(f"{path}.{uuid.uuid4().hex}")
        try:
            with partial.open("wb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            partial.replace(path)
        finally:
            partial.unlink(missing_ok=True)

    def _files(self) -> Iterator[tuple[str, int, float]]:
        for path in Path(self._root).glob("??/*"):
            with suppress(FileNotFoundError):  # removed meanwhile
                seen = path.lstat()
                yield str(path), seen.st_size, seen.st_mtime

    def _remove(self, path: str) -> None:
        Path(path).unlink()


class Remote(ArtefactStore):
    """A place that fsspec reaches. In stores of objects an upload is one step."""

    def __init__(self, url: str) -> None:
        """Raises UsageError for an address that nobody knows, MachineError for a missing package."""
        name = _SECRET.sub("", url)
        try:
            from fsspec.core import url_to_fs
        except ImportError:
            raise MachineError(
                f"the artefact store {name} needs fsspec: {install_command('artefacts')}, or name a directory"
            ) from None
        try:
            self._system, root = url_to_fs(url, use_listings_cache=False)
        except ImportError as error:
            raise MachineError(f"the artefact store {name} needs another package: {error}") from None
        except ValueError as error:
            raise UsageError(f"the artefact store {name} cannot be found: {error}") from None
        super().__init__(name, root.rstrip("/"))
        self._has_bucket = False
        """Whether its bucket is known to be there."""

    def _read(self, path: str, most: int) -> bytes:
        try:
            with self._system.open(path, "rb") as file:
                data: bytes = file.read(most)
                return data
        except FileNotFoundError:
            self._require_bucket()
            raise

    def _write(self, path: str, data: bytes) -> None:
        try:
            self._system.pipe_file(path, data)
        except FileNotFoundError:
            self._require_bucket()
            self._system.makedirs(path.rpartition("/")[0], exist_ok=True)
            self._system.pipe_file(path, data)

    def _files(self) -> Iterator[tuple[str, int, float]]:
        files = self._system.find(self._root, detail=True)
        if not files:
            self._require_bucket()
        for path, seen in files.items():
            written = _written(seen)
            if written is None:
                raise StoreAway(f"the artefact store {self._name} does not say when a file was written")
            yield path, seen["size"], written

    def _remove(self, path: str) -> None:
        self._system.rm_file(path)

    def _require_bucket(self) -> None:
        """Raises StoreAway where the bucket is not there: a mistyped name never makes a bucket."""
        bucket = self._root.partition("/")[0]  # empty where folders begin at a root, as on a server of files
        if bucket and not self._has_bucket and not self._system.exists(bucket):
            with suppress(PermissionError):  # it may exist and hide itself
                try:
                    self._system.ls(bucket)
                except FileNotFoundError:
                    raise StoreAway(
                        f"the artefact store {self._name} cannot be used: there is no bucket {bucket}; make "
                        "it, or name another"
                    ) from None
        self._has_bucket = True


def open_artefacts(text: str, *, create: bool = True) -> ArtefactStore:
    """The store that a user names: a directory, or an address that fsspec knows.

    `create`: whether a directory that is not there is made. Raises UsageError, MachineError.
    """
    place = artefacts_place(text)
    return Remote(place) if is_address(place) else Directory(place, create=create)


def artefacts_place(text: str) -> str:
    """The place that a user names, for a process in another directory: an absolute path, or an address."""
    path = text.removeprefix(_FILE)
    return path if is_address(path) else str(user_path(path).absolute())


def is_address(text: str) -> bool:
    """Whether a store is reached by fsspec, and is no directory."""
    return "://" in text or "::" in text


def _written(seen: Mapping[str, Any]) -> float | None:
    """Unix time when a file was written, of what its file system says about it; None where it does not."""
    for value in filter(None, map(seen.get, _TIMES)):
        if isinstance(value, int | float):
            return float(value)
        with suppress(ValueError, TypeError):
            moment = value if isinstance(value, datetime) else datetime.fromisoformat(value)
            return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
    return None


FORMAT = 2
"""Raise it when the meaning of a record changes: older ones are then built again."""
TIMED_OUT_S = 3600.0
"""Seconds for which a build that stopped at its limit is not tried again: a machine may have been busy."""


class NoArtefact(KernelproofError):
    """There is no artefact that this machine can use. The message says why."""


class Artefact(FrozenRecord):
    """The record: a `Prebuilt` without paths."""

    format: int = FORMAT
    key: str
    published: float
    """Unix time."""
    torch: tuple[str | None, ...]
    """The versions of torch, its CUDA and Python's binary interface that a library is for."""
    architecture: str
    """Of the GPU; it says nothing of builds for a CPU."""
    cpu: str
    """It matters to builds for the very machine."""
    builds: tuple[Build, ...]
    contents: dict[str, Build]
    """By the hash of a build's request."""
    libraries: tuple[int, ...]
    """The bytes of each library, in their order after the record."""
    sandbox: SandboxReport | None
    trouble: str
    raised: str

    @property
    def every_build(self) -> tuple[Build, ...]:
        """Those that count as the candidate's, and those that it may ask for."""
        return (*self.builds, *self.contents.values())

    def fits(self, here: Toolchain, name: str) -> bool:
        """Whether a machine can judge a candidate of this backend by it."""
        same = self.torch == _torch(here)
        if backend(name).on_gpu:
            same = same and self.architecture == here.architecture
        native = any("native" in command for build in self.every_build for command in build.commands)
        return same and (not native or self.cpu == here.cpu)


def build_key(source: str, problem: Problem, settings: VerifySettings, toolchain: Toolchain) -> str:
    """A hash of all that decides the build stage: equal work has equal keys."""
    limits = ("backend", "size", "build_seconds", "load_seconds", "memory_bytes", "unsafe")
    given = settings.model_dump(mode="json", include=set(limits))
    machine = [toolchain.identity, toolchain.architecture, toolchain.cpu]
    return sha256_json([FORMAT, sha256_text(source), problem.sha256, given, machine])


def is_published(key: str, store: ArtefactStore) -> bool:
    """Whether equal work has not to be built again. Raises StoreAway."""
    try:
        record, _ = _read(key, store)
    except NoArtefact:
        return False
    timed_out = any(build.state is BuildState.TIMEOUT for build in record.every_build)
    return not timed_out or time.time() < record.published + TIMED_OUT_S


def publish(prebuilt: Prebuilt, key: str, toolchain: Toolchain, store: ArtefactStore) -> bool:
    """Puts the result of a build stage into the store, unless it is too large or shows a failure of ours.

    Raises StoreAway, and NoArtefact where a library is no longer in the cache of builds.
    """
    libraries: dict[str, bytes] = {}
    for build in (*prebuilt.builds, *prebuilt.contents.values()):
        if build.state in (BuildState.INFRASTRUCTURE, BuildState.UNAVAILABLE):
            return False
        if build.state is BuildState.OK:
            libraries[str(build.library_sha256)] = _library(build)
    record = Artefact(
        key=key,
        published=time.time(),
        torch=_torch(toolchain),
        architecture=toolchain.architecture,
        cpu=toolchain.cpu,
        builds=tuple(map(_without_path, prebuilt.builds)),
        contents={content: _without_path(build) for content, build in prebuilt.contents.items()},
        libraries=tuple(map(len, libraries.values())),
        sandbox=prebuilt.sandbox,
        trouble=encodable(prebuilt.trouble),
        raised=encodable(prebuilt.raised),
    )
    entry = b"\n".join((record.model_dump_json().encode(), b"".join(libraries.values())))
    if len(entry) > ENTRY_BYTES:
        return False
    store.put(key, entry)
    return True


def fetch(key: str, name: str, stage: BuildStage, store: ArtefactStore) -> Prebuilt:
    """The build stage that was published, its libraries in this machine's cache. `name`: the backend.

    Raises NoArtefact where there is none for such a machine; StoreAway; MachineError.
    """
    record, libraries = _read(key, store)
    if not record.fits(stage.toolchain, name):
        raise NoArtefact("it was built for another torch, GPU or CPU than this machine's")

    def adopted(build: Build) -> Build:
        if build.state is not BuildState.OK:
            return build
        library = stage.adopt(build, libraries[str(build.library_sha256)]).library
        return build.model_copy(update={"library": library})

    contents = {content: adopted(build) for content, build in record.contents.items()}
    builds = tuple(map(adopted, record.builds))
    return Prebuilt(builds, record.sandbox, record.trouble, record.raised, contents)


def _read(key: str, store: ArtefactStore) -> tuple[Artefact, dict[str, bytes]]:
    """An artefact and its libraries. Raises NoArtefact, StoreAway."""
    line, _, rest = (store.get(key) or b"").partition(b"\n")
    try:
        record = Artefact.model_validate_json(line)
    except ValidationError:
        raise NoArtefact(f"the artefact {key} is not in the store, or damaged") from None
    libraries, start = dict[str, bytes](), 0
    for size in record.libraries:
        library = rest[start : start + size]
        libraries[hashlib.sha256(library).hexdigest()] = library
        start += size
    wanted = {build.library_sha256 for build in record.every_build if build.state is BuildState.OK}
    if (record.format, record.key) != (FORMAT, key) or wanted != libraries.keys():
        raise NoArtefact(f"the artefact {key} is not one of this version")
    return record, libraries


def _library(build: Build) -> bytes:
    try:
        data = Path(str(build.library)).read_bytes()
    except OSError:
        raise NoArtefact("a library was removed from the build cache") from None
    if hashlib.sha256(data).hexdigest() != build.library_sha256:
        raise NoArtefact("a library in the build cache is damaged")
    return data


def _torch(toolchain: Toolchain) -> tuple[str | None, ...]:
    return (toolchain.torch, toolchain.torch_git, toolchain.torch_cuda, toolchain.extension_suffix)


def _without_path(build: Build) -> Build:
    return build.model_copy(update={"library": None})
