"""A store of bytes under their SHA-256: what every such store can do.

Nobody reads a part of an entry: what does not have its hash is spoiled. Entries may be removed at any time;
what is missing is built again.
"""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass

from kernelproof.errors import KernelproofError, MachineError


class ArtefactLost(KernelproofError):
    """An entry of the store is missing, or its bytes have changed."""


class StoreAway(MachineError):
    """The store cannot be reached, or cannot be written."""


@dataclass(frozen=True)
class Entry:
    """An entry of a store."""

    place: str
    """Its file, in the store's words."""
    sha256: str
    """Empty for a file of a publisher that was killed while it wrote."""
    bytes: int
    written: float
    """Unix time when it was put the last time, by the store's clock."""


class ArtefactStore(ABC):
    """Bytes under their hash. Thread-safe."""

    @abstractmethod
    def put(self, data: bytes) -> str:
        """Stores bytes in one step, unless they are there; their SHA-256. Afterwards the entry is not older
        than half an hour.

        Raises StoreAway.
        """

    def get(self, sha256: str, most: int) -> bytes:
        """The bytes with this hash, `most` at most. A spoiled entry is removed, where that is allowed.

        Raises ArtefactLost, StoreAway.
        """
        found = self.look(sha256, most)
        if found is None:
            with suppress(StoreAway), self._explained(), suppress(FileNotFoundError):
                self._remove(self._path(sha256))
            raise ArtefactLost(f"artefact {sha256} is spoiled")
        return found

    def look(self, sha256: str, most: int) -> bytes | None:
        """As `get`, but a spoiled entry is None, and stays."""
        with self._explained():
            try:
                data = self._read(self._path(sha256), most + 1)
            except FileNotFoundError:
                raise ArtefactLost(f"artefact {sha256} is not in the store") from None
        return data if len(data) <= most and has_hash(data, sha256) else None

    @abstractmethod
    def entries(self) -> list[Entry]:
        """All that publishers put into the store. Files of others are left out. Raises StoreAway."""

    @abstractmethod
    def remove(self, entry: Entry) -> bool:
        """Removes an entry; False where it is gone, or is known to be put again since it was listed.

        Raises StoreAway.
        """

    @abstractmethod
    def _path(self, sha256: str) -> str:
        """The file of an entry."""

    @abstractmethod
    def _read(self, path: str, most: int) -> bytes:
        """The first bytes of a file. Raises FileNotFoundError."""

    @abstractmethod
    def _remove(self, path: str) -> None:
        """Removes a file. Raises FileNotFoundError where there is none and the store says so."""

    @abstractmethod
    def _explained(self) -> AbstractContextManager[None]:
        """Turns failures of the store into StoreAway."""


def has_hash(data: bytes, sha256: str) -> bool:
    """Whether bytes are what their name says."""
    return hashlib.sha256(data).hexdigest() == sha256
