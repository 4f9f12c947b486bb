"""The cache of builds, as `kernelproof cache` speaks of it."""

from __future__ import annotations

from kernelproof.types.base import FrozenRecord


class CacheSurvey(FrozenRecord):
    """What lies in the cache directory."""

    path: str
    builds: int
    """Entries, damaged ones too."""
    bytes: int
    """Room of the builds on the disk, in blocks of 4 KiB."""
    bound_bytes: int
    """Most room: least recently used builds are removed beyond it."""
    ok: int
    error: int
    damaged: int
    """Entries whose record cannot be read; they are built again when they are asked for."""
    oldest_use: str | None
    """When the least recently used build was stored or last loaded, ISO 8601 in UTC; None without builds."""
    newest_use: str | None
    toolchains: tuple[str, ...]
    """Compilers and torch that facts are remembered of."""
    prebuilt: int
    """Sources that are known to be built, and whose builds are all there."""
    folders: dict[str, int]
    """Bytes of the files in each folder beside the builds."""


class Removal(FrozenRecord):
    """What was removed from the cache, and what is left."""

    builds: int
    bytes: int
    left_builds: int
    left_bytes: int
    index_entries: int = 0
    """Removed entries of the build index: sources whose builds were known."""
    trouble: str = ""
    """Why a build could not be removed, of the first where it was so."""
