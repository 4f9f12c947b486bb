"""Where artefacts lie: a directory that machines share, or what fsspec reaches."""

from __future__ import annotations

import hashlib
import os
import re
import time
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from kernelproof.errors import KernelproofError, MachineError, UsageError
from kernelproof.service.artefact_store import ArtefactStore, Entry, StoreAway, has_hash
from kernelproof.workspace import user_path

REFRESH_S = 1800.0
"""An entry that is put again after so many seconds is written again where that makes it new."""
_FILE = "file://"
_SECRET = re.compile(r"(?<=://)[^/@]*@|\?.*")
_HASH = re.compile(r"[0-9a-f]{64}")
_UNFINISHED = re.compile(r"\.[0-9a-f]{32}")
_TIMES = ("LastModified", "last_modified", "mtime", "updated", "modified", "created")
"""Where file systems of fsspec say when a file was written."""


class Directory(ArtefactStore):
    """A directory: on this machine, or on a file system that several machines mount."""

    def __init__(self, root: Path, *, create: bool = True) -> None:
        """Makes it where it is not there, unless told otherwise. Raises StoreAway, UsageError."""
        self._root = root
        with self._explained():
            if create:
                root.mkdir(parents=True, exist_ok=True)
            elif not root.is_dir():
                raise UsageError(f"there is no directory {root}; --artefacts names where builders publish")

    def put(self, data: bytes) -> str:
        """As `ArtefactStore` has it; the file appears under its name when it is whole."""
        sha256 = hashlib.sha256(data).hexdigest()
        path = Path(self._path(sha256))
        with self._explained():
            with suppress(FileNotFoundError):
                if path.stat().st_size == len(data) and has_hash(path.read_bytes(), sha256):
                    with suppress(PermissionError):  # another user's, who alone may date it
                        os.utime(path)
                    return sha256
            path.parent.mkdir(exist_ok=True)
            partial = path.with_name(f".{uuid.uuid4().hex}")
            try:
                with partial.open("wb") as file:
                    file.write(data)
                    file.flush()
                    os.fsync(file.fileno())
                partial.replace(path)
            finally:
                partial.unlink(missing_ok=True)
        return sha256

    def entries(self) -> list[Entry]:
        """As `ArtefactStore` has it."""
        with self._explained():
            folders = [each for each in os.scandir(self._root) if each.is_dir(follow_symlinks=False)]
            return [found for folder in folders for found in self._entries_in(folder)]

    def _entries_in(self, folder: os.DirEntry[str]) -> Iterator[Entry]:
        for file in os.scandir(folder):
            finished = _HASH.fullmatch(file.name) and file.name[:2] == folder.name
            if not (finished or _UNFINISHED.fullmatch(file.name)) or not file.is_file(follow_symlinks=False):
                continue
            with suppress(FileNotFoundError):  # removed meanwhile
                seen = file.stat(follow_symlinks=False)
                yield Entry(file.path, file.name if finished else "", seen.st_size, seen.st_mtime)

    def remove(self, entry: Entry) -> bool:
        """As `ArtefactStore` has it."""
        path = Path(entry.place)
        with self._explained():
            try:
                if path.lstat().st_mtime > entry.written:
                    return False
                path.unlink()
            except FileNotFoundError:
                return False
        return True

    def _path(self, sha256: str) -> str:
        return str(self._root / sha256[:2] / sha256)

    def _read(self, path: str, most: int) -> bytes:
        with Path(path).open("rb") as file:
            return file.read(most)

    def _remove(self, path: str) -> None:
        Path(path).unlink()

    @contextmanager
    def _explained(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            why = error.strerror or str(error)
            raise StoreAway(f"the artefact store {self._root} cannot be used: {why}") from error


class Remote(ArtefactStore):
    """A place that fsspec reaches, such as `s3://BUCKET/FOLDER`."""

    def __init__(self, url: str) -> None:
        """Raises UsageError for an address that makes no sense, MachineError where a package is missing."""
        self._name = _SECRET.sub("", url)
        try:
            from fsspec.core import url_to_fs
        except ImportError:
            raise MachineError(
                f"the artefact store {self._name} needs fsspec: pip install 'kernelproof[artefacts]', or "
                "name a directory"
            ) from None
        try:
            self._system, root = url_to_fs(url, use_listings_cache=False)
        except ImportError as error:
            raise MachineError(f"the artefact store {self._name} needs another package: {error}") from None
        except ValueError as error:
            raise UsageError(f"the artefact store {self._name} cannot be found: {error}") from None
        self._root = root.rstrip("/")
        self._met = False
        """Whether its bucket is known to be there."""

    def put(self, data: bytes) -> str:
        """As `ArtefactStore` has it: an upload is one step in stores of objects; elsewhere its hash says
        whether it was whole."""
        sha256 = hashlib.sha256(data).hexdigest()
        path = self._path(sha256)
        with self._explained():
            if not self._is_fresh(path, len(data)):
                try:
                    self._system.pipe_file(path, data)
                except FileNotFoundError:
                    self._hold_bucket()
                    self._system.makedirs(path.rpartition("/")[0], exist_ok=True)
                    self._system.pipe_file(path, data)
        return sha256

    def _is_fresh(self, path: str, count: int) -> bool:
        try:
            seen = self._system.info(path)
        except FileNotFoundError:
            return False
        written = _written(seen)
        return seen["size"] == count and (written is None or written > time.time() - REFRESH_S)

    def _hold_bucket(self) -> None:
        """Raises StoreAway where the bucket is not there: a mistyped name never makes a bucket."""
        bucket = self._root.partition("/")[0]  # empty where folders begin at a root, as on a server of files
        if not bucket or self._met or self._system.exists(bucket):
            self._met = True
            return
        with suppress(PermissionError):  # it may exist and hide itself
            try:
                self._system.ls(bucket)
            except FileNotFoundError:
                raise StoreAway(
                    f"the artefact store {self._name} cannot be used: there is no bucket {bucket}; make it, "
                    "or name another"
                ) from None
        self._met = True

    def entries(self) -> list[Entry]:
        """As `ArtefactStore` has it."""
        found = []
        with self._explained():
            for place, seen in self._system.find(self._root, detail=True).items():
                sha256 = place.rpartition("/")[2]
                if not _HASH.fullmatch(sha256) or place.lstrip("/") != self._path(sha256).lstrip("/"):
                    continue
                written = _written(seen)
                if written is None:
                    raise StoreAway(f"the artefact store {self._name} does not say when a file was written")
                found.append(Entry(place, sha256, seen["size"], written))
            if not found:
                self._hold_bucket()
        return found

    def remove(self, entry: Entry) -> bool:
        """As `ArtefactStore` has it. Stores of objects do not say that there was nothing to remove."""
        with self._explained():
            try:
                self._remove(entry.place)
            except FileNotFoundError:
                return False
        return True

    def _path(self, sha256: str) -> str:
        return f"{self._root}/{sha256[:2]}/{sha256}"

    def _read(self, path: str, most: int) -> bytes:
        try:
            with self._system.open(path, "rb") as file:
                data: bytes = file.read(most)
                return data
        except FileNotFoundError:
            self._hold_bucket()
            raise

    def _remove(self, path: str) -> None:
        self._system.rm_file(path)

    @contextmanager
    def _explained(self) -> Iterator[None]:
        try:
            yield
        except KernelproofError:
            raise
        except Exception as error:  # each file system has errors of its own
            why = str(error).partition("\n")[0] or type(error).__name__
            raise StoreAway(f"the artefact store {self._name} cannot be used: {why}") from error


def open_artefacts(text: str, *, create: bool = True) -> ArtefactStore:
    """The store that a user names: a directory, or an address that fsspec knows.

    `create`: whether a directory that is not there is made. Raises UsageError, MachineError.
    """
    place = artefacts_place(text)
    return Remote(place) if is_address(place) else Directory(Path(place), create=create)


def artefacts_place(text: str) -> str:
    """The place that a user names, for a process in another directory: an absolute path, or an address."""
    path = text.removeprefix(_FILE)
    return path if is_address(path) else str(user_path(path).absolute())


def is_address(text: str) -> bool:
    """Whether a store is reached by fsspec, and is no directory."""
    return "://" in text or "::" in text


def _written(seen: Mapping[str, Any]) -> float | None:
    """Unix time when a file was written, of what its file system says about it; None where it does not."""
    for name in _TIMES:
        value = seen.get(name)
        if isinstance(value, str):
            with suppress(ValueError):
                value = datetime.fromisoformat(value)
        if isinstance(value, datetime):
            return (value if value.tzinfo else value.replace(tzinfo=UTC)).timestamp()
        if isinstance(value, int | float):
            return float(value)
    return None
