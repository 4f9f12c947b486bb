"""The build index: `<cache>/prebuilt/<hash[:2]>/<hash>` holds the keys of the builds that a source asks for,
by their requests' `content_sha256`.

An entry saves a run of the candidate that would only show its builds. It is used while the cache holds
all of these builds, so removing builds never makes an entry wrong.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path

_NAME = re.compile(r"[0-9a-f]{64}")


class BuildIndex:
    """The entries below a cache directory. `name` is the SHA-256 of source, problem and toolchain."""

    def __init__(self, cache_dir: Path) -> None:
        self._root = cache_dir / "prebuilt"

    def keys(self, name: str) -> dict[str, str] | None:
        """The builds of a source, content to key; None without an entry, or with a damaged one."""
        return _read(self._path(name))

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


def _read(path: Path) -> dict[str, str] | None:
    try:
        keys = json.loads(path.read_text())
    except (OSError, ValueError):
        return None
    if not isinstance(keys, dict) or not all(
        isinstance(key, str) and _NAME.fullmatch(key) for key in keys.values()
    ):
        return None
    return keys


def _all(keys: dict[str, str] | None, held: Callable[[str], bool]) -> bool:
    return keys is not None and all(map(held, keys.values()))


def _removed(paths: Iterable[Path]) -> int:
    count = 0
    for path in paths:
        with suppress(FileNotFoundError):
            path.unlink()
            count += 1
    return count
