"""The build index, sources whose extensions are built: `<cache>/prebuilt/<hash[:2]>/<hash>` names the builds'
keys.

A mark saves importing a candidate only to learn what it wants built. It is believed while the cache holds
all of these builds, so removing builds never makes a mark lie.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path

_NAME = re.compile(r"[0-9a-f]{64}")


class BuildIndex:
    """The marks below a cache directory. `name` is the SHA-256 of source and toolchain."""

    def __init__(self, cache_dir: Path) -> None:
        self._root = cache_dir / "prebuilt"

    def keys(self, name: str) -> tuple[str, ...] | None:
        """The builds of a source; None without a mark, or with one that is damaged."""
        return _read(self._path(name))

    def set(self, name: str, keys: Sequence[str]) -> None:
        """Says that a source's extensions are these builds. Raises OSError when the disk is full."""
        path = self._path(name)
        path.parent.mkdir(parents=True, exist_ok=True)
        # Nothing shorter than the whole list is JSON: a reader takes a part of it for no mark.
        path.write_text(json.dumps(list(keys)))

    def count(self, held: Callable[[str], bool] = lambda _: True) -> int:
        """How many name only builds that are `held`."""
        return sum(1 for path in self._paths() if _all(_read(path), held))

    def remove_all(self) -> int:
        """Removes all marks; how many. Raises OSError where they cannot be removed."""
        return _removed(self._paths())

    def remove_stale(self, held: Callable[[str], bool]) -> int:
        """Removes the marks that name a build which is not `held`, and damaged ones; how many.

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
