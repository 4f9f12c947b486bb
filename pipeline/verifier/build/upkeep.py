"""Looking at the cache of builds, and making it smaller: what `kernelproof cache` does."""

from __future__ import annotations

import json
import os
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from kernelproof.errors import MachineError
from kernelproof.types.build import BuildState, CacheSurvey, Removal
from kernelproof.verifier.build.build_cache import (
    LASTING,
    RECORD,
    BuildIndex,
    Entry,
    LockTimeout,
    entries,
    open_cache,
)
from kernelproof.workspace import CACHE_VARIABLE, cache_bound

BUILDS = "builds"


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
