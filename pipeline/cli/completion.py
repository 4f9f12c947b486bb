"""What a shell offers after a press of Tab: problems, runs, models, attempts.

A person waits for it. So nothing here imports torch, pydantic or SQLAlchemy, and no problem's file is read.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from contextlib import closing
from pathlib import Path
from urllib.parse import quote

import typer

from kernelproof.workspace import DATABASE, DATABASE_VARIABLE, WORKSPACE_VARIABLE, user_path

_HARMLESS = re.compile(r"[\w./:@+,=-]{1,200}", re.ASCII)
"""A shell evaluates what it is offered: anything else is not offered."""
PATIENCE_S = 0.2
MOST = 100
_LEVEL = re.compile(r"level\d+")
_NUMBERED = re.compile(r"(\d+)_(.+)")


def problems(ctx: typer.Context, incomplete: str) -> list[str]:
    """Ids, levels and names of the problems of `--suite`, else of the packaged ones."""
    from importlib.resources import files

    suite = ctx.params.get("suite")
    found = _listed(Path(suite) if suite else Path(str(files("kernelproof.reference_models"))))
    return _beginning(found, incomplete)


def runs(ctx: typer.Context, incomplete: str) -> list[str]:
    names = "SELECT name FROM runs WHERE name IS NOT NULL GROUP BY name ORDER BY max(id) DESC"
    return _beginning(_stored(ctx, names), incomplete)


def models(ctx: typer.Context, incomplete: str) -> list[str]:
    """The models of stored runs, and how others are named."""
    asked = "SELECT model FROM runs WHERE kind = 'generate' GROUP BY model ORDER BY max(id) DESC"
    others = ("openai:", "openrouter:", "anthropic:", "ollama:", "replay:demo", "replay:")
    return _beginning((*_stored(ctx, asked), *others), incomplete)


def attempts(ctx: typer.Context, incomplete: str) -> list[str]:
    numbers = _stored(ctx, "SELECT id FROM attempts ORDER BY id DESC")
    return _beginning(("last", *numbers), incomplete)


def _beginning(words: Iterable[str], incomplete: str) -> list[str]:
    fit = (word for word in words if word.startswith(incomplete) and _HARMLESS.fullmatch(word))
    return list(dict.fromkeys(fit))


def _database(ctx: typer.Context) -> Path | None:
    """The file that results are in; None where it is a server: a shell does not wait for a network."""
    named = ctx.params.get("db") or os.environ.get(DATABASE_VARIABLE)
    if named:
        return None if "://" in named else user_path(named)
    given = ctx.params.get("workspace") or os.environ.get(WORKSPACE_VARIABLE) or "."
    return user_path(given) / DATABASE


def _stored(ctx: typer.Context, query: str) -> list[str]:
    """The first column of at most MOST rows, the newest first; nothing where they cannot be read at once."""
    import sqlite3

    path = _database(ctx)
    if path is None:
        return []
    try:
        address = f"file:{quote(os.fsencode(path.absolute()))}?mode=ro"
        with closing(sqlite3.connect(address, uri=True, timeout=PATIENCE_S)) as connection:
            return [str(row[0]) for row in connection.execute(f"{query} LIMIT {MOST}")]
    except (sqlite3.Error, OSError):
        return []


def _listed(suite: Path) -> list[str]:
    """Ids, then levels, then names, as the files' paths say them."""
    for root in (suite, suite / "KernelBench"):
        levels = [folder for folder in _sorted(root.glob("level*")) if _LEVEL.fullmatch(folder.name)]
        if levels:
            break
    shown = [file for folder in levels or [suite] for file in _sorted(folder.glob("[!_.]*.py"))]
    places = [(file.parent.name, *_read(file)) for file in shown]
    return [
        *(_id(*place) for place in places),
        *(each.name for each in levels),
        *(each[2] for each in places),
    ]


def _sorted(paths: Iterable[Path]) -> list[Path]:
    """By number, as people count: level2 before level10."""
    parts = {path: re.split(r"(\d+)", path.name) for path in paths}
    return sorted(parts, key=lambda path: [(part.zfill(9), part) for part in parts[path]])


def _read(file: Path) -> tuple[str, str]:
    """`23` and `softmax` of `23_softmax.py`; no number where there is none."""
    numbered = _NUMBERED.fullmatch(file.stem)
    return (numbered[1], numbered[2]) if numbered else ("", file.stem)


def _id(folder: str, number: str, name: str) -> str:
    if number:
        return f"{folder}/{int(number)}"
    return f"{folder}/{name}" if _LEVEL.fullmatch(folder) else name
