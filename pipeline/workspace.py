"""Where a user's results live, and where this machine keeps what can be made again."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from pipeline.errors import UsageError

WORKSPACE_VARIABLE = "KERNELPROOF_WORKSPACE"
CACHE_VARIABLE = "KERNELPROOF_CACHE"


@dataclass(frozen=True)
class Workspace:
    """A directory that holds `generated/` (what runs write) and `db/attempts.sqlite`."""

    root: Path

    @property
    def database(self) -> Path:
        """The SQLite file."""
        return self.root / "db" / "attempts.sqlite"

    @property
    def generated(self) -> Path:
        """Sources, responses and reports that runs write, for people to read."""
        return self.root / "generated"


def open_workspace(path: Path | None = None) -> Workspace:
    """The workspace at `path`, else `$KERNELPROOF_WORKSPACE`, else the current directory.

    Raises UsageError when the directory does not exist: a typo must not make an empty leaderboard.
    """
    chosen = path or Path(os.environ.get(WORKSPACE_VARIABLE) or ".")
    root = chosen.expanduser().resolve()
    if not root.is_dir():
        raise UsageError(f"workspace {root} is not a directory; make it first: mkdir -p {root}")
    return Workspace(root)


def cache_directory() -> Path:
    """`$KERNELPROOF_CACHE`, else the user's cache directory for kernelproof (builds, toolchain facts)."""
    configured = os.environ.get(CACHE_VARIABLE)
    if configured:
        return Path(configured).expanduser().resolve()
    from platformdirs import user_cache_path

    return user_cache_path("kernelproof")
