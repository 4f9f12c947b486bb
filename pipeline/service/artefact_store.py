"""A store of bytes under their SHA-256: a directory that machines share, or what fsspec reaches.

Nobody reads a part of an entry: what does not have its hash is spoiled. Entries may be removed at any time;
what is missing is built again.
"""

from __future__ import annotations

import hashlib
import os
import re
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Protocol

from kernelproof.errors import KernelproofError, MachineError, UsageError
from kernelproof.workspace import user_path

_FILE = "file://"
_SECRET = re.compile(r"(?<=://)[^/@]*@|\?.*")


class ArtefactLost(KernelproofError):
    """An entry of the store is missing, or its bytes have changed."""


class StoreAway(MachineError):
    """The store cannot be reached, or cannot be written."""


class ArtefactStore(Protocol):
    """Bytes under their hash. Thread-safe."""

    def put(self, data: bytes) -> str:
        """Stores bytes in one step, unless they are there; their SHA-256. Raises StoreAway."""

    def get(self, sha256: str, most: int) -> bytes:
        """The bytes with this hash, `most` at most. A spoiled entry is removed.

        Raises ArtefactLost, StoreAway.
        """


class Directory:
    """A directory: on this machine, or on a file system that several machines mount."""

    def __init__(self, root: Path) -> None:
        """Makes it where it is not there. Raises StoreAway."""
        self._root = root
        with self._explained():
            root.mkdir(parents=True, exist_ok=True)

    def put(self, data: bytes) -> str:
        """As `ArtefactStore` has it; the file appears under its name when it is whole."""
        sha256 = hashlib.sha256(data).hexdigest()
        path = self._path(sha256)
        with self._explained():
            with suppress(FileNotFoundError):
                if path.stat().st_size == len(data) and _has(path.read_bytes(), sha256):
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

    def get(self, sha256: str, most: int) -> bytes:
        """As `ArtefactStore` has it."""
        path = self._path(sha256)
        with self._explained():
            try:
                with path.open("rb") as file:
                    data = file.read(most + 1)
            except FileNotFoundError:
                raise ArtefactLost(f"artefact {sha256} is not in the store") from None
            if len(data) <= most and _has(data, sha256):
                return data
            path.unlink(missing_ok=True)
        raise ArtefactLost(f"artefact {sha256} is spoiled")

    def _path(self, sha256: str) -> Path:
        return self._root / sha256[:2] / sha256

    @contextmanager
    def _explained(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            why = error.strerror or str(error)
            raise StoreAway(f"the artefact store {self._root} cannot be used: {why}") from error


class Remote:
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

    def put(self, data: bytes) -> str:
        """As `ArtefactStore` has it: an upload is one step in stores of objects; elsewhere its hash says
        whether it was whole."""
        sha256 = hashlib.sha256(data).hexdigest()
        path = self._path(sha256)
        with self._explained():
            if not (self._system.exists(path) and self._system.size(path) == len(data)):
                self._system.makedirs(self._parent(sha256), exist_ok=True)
                self._system.pipe_file(path, data)
        return sha256

    def get(self, sha256: str, most: int) -> bytes:
        """As `ArtefactStore` has it."""
        path = self._path(sha256)
        with self._explained():
            try:
                with self._system.open(path, "rb") as file:
                    data: bytes = file.read(most + 1)
            except FileNotFoundError:
                raise ArtefactLost(f"artefact {sha256} is not in the store") from None
            if len(data) <= most and _has(data, sha256):
                return data
            with suppress(FileNotFoundError):
                self._system.rm_file(path)
        raise ArtefactLost(f"artefact {sha256} is spoiled")

    def _parent(self, sha256: str) -> str:
        return f"{self._root}/{sha256[:2]}"

    def _path(self, sha256: str) -> str:
        return f"{self._parent(sha256)}/{sha256}"

    @contextmanager
    def _explained(self) -> Iterator[None]:
        try:
            yield
        except KernelproofError:
            raise
        except Exception as error:  # each file system has errors of its own
            why = str(error).partition("\n")[0]
            raise StoreAway(f"the artefact store {self._name} cannot be used: {why}") from error


def open_artefacts(text: str) -> ArtefactStore:
    """The store that a user names: a directory, or an address that fsspec knows.

    Raises UsageError, MachineError.
    """
    if text.startswith(_FILE):
        text = text.removeprefix(_FILE)
    if "://" in text or "::" in text:
        return Remote(text)
    return Directory(user_path(text).absolute())


def _has(data: bytes, sha256: str) -> bool:
    return hashlib.sha256(data).hexdigest() == sha256
