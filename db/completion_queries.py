"""Words for completion in a shell: read at once or not at all, and without SQLAlchemy."""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing
from pathlib import Path
from urllib.parse import quote

PATIENCE_S = 0.2
"""A shell waits for this, and so does a person."""
MOST = 100


def run_names(path: Path | None) -> list[str]:
    return _first_column(
        path, "SELECT name FROM runs WHERE name IS NOT NULL GROUP BY name ORDER BY max(id) DESC"
    )


def model_names(path: Path | None) -> list[str]:
    """The models of runs, as `openai:MODEL`, the newest first."""
    return _first_column(
        path, "SELECT model FROM runs WHERE kind = 'generate' GROUP BY model ORDER BY max(id) DESC"
    )


def attempt_numbers(path: Path | None) -> list[str]:
    return _first_column(path, "SELECT id FROM attempts ORDER BY id DESC")


def _first_column(path: Path | None, query: str) -> list[str]:
    """The first column of at most MOST rows; nothing where the database cannot be read so."""
    if path is None:
        return []
    try:
        address = f"file:{quote(os.fsencode(path.absolute()))}?mode=ro"
        with closing(sqlite3.connect(address, uri=True, timeout=PATIENCE_S)) as connection:
            return [str(row[0]) for row in connection.execute(f"{query} LIMIT {MOST}")]
    except (sqlite3.Error, OSError):
        return []
