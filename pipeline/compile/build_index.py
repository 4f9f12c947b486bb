"""The build index: `<cache>/prebuilt/<hash[:2]>/<hash>` holds the keys of the builds that a source asks for.

An entry saves the import of a candidate that would only show its builds. It is used while the cache holds
all of these builds, so removing builds never makes an entry wrong.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path

_NAME = re.compile(r"[0-9a-f]{64}")


class BuildIndex:
    """The entries below a cache directory. `name` is the SHA-256 of source and toolchain."""

    def __init__(self, cache_dir: Path) -> None:
        self._root = cache_dir / "prebuilt"

    def keys(self, name: str) -> tuple[str, ...] | None:
        """The builds of a source; None without an entry, or with a damaged one."""
        return _read(self._path(name))

    def set(self, name: str, keys: Sequence[str]) -> None:
        """Says that a source's extensions are these builds. Raises OSError when the disk is full."""
        path = self._path(name)
        path.parent.mkdir(parents=True, exist_ok=True)
        # Only the whole list is JSON, so a reader ignores a part of it.
        path.write_text(json.dumps(list(keys)))

    def count(self, held: Callable[[str], bool] = lambda _: True) -> int:
        """The number of entries that name only builds which are `held`."""
        return sum(1 for path in self._paths() if _all(_read(path), held))

    def remove_all(self) -> int:
        """Removes all entries, and returns their number. Raises OSError where they cannot be removed."""
        return _removed(self._paths())

    def remove_stale(self, held: Callable[[str], bool]) -> int:
        """Removes entries that name a build which is not `held`, and damaged ones. Returns their number.

        Raises OSError where they cannot be removed.
        """
        return _removed(path for path in self._paths() if not _all(_read(path), held))

    def _path(self, name: str) -> Path:
        return self._root / name[:2] / name

    def _paths(self) -> Iterator[Path]:
        return (path for path in self._root.glob("[0-9a-f][0-9a-f]/*") if _NAME.fullmatch(path.name))


def _read(path: Path) -> tuple[str, ...] | None:
    try:
        keys = json.loads(path.read_text())
    except (OSError, ValueError):
        return None
    if not isinstance(keys, list) or not all(isinstance(key, str) and _NAME.fullmatch(key) for key in keys):
        return None
    return tuple(keys)


def _all(keys: tuple[str, ...] | None, held: Callable[[str], bool]) -> bool:
    return keys is not None and all(map(held, keys))


def _removed(paths: Iterable[Path]) -> int:
    count = 0
    for path in paths:
        with suppress(FileNotFoundError):
            path.unlink()
            count += 1
    return count
