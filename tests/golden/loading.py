"""The golden files, and copies of them that a test may change."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

from tests.cli.program import Program
from tests.plugins import install

FILES = Path(__file__).parent / "files"
DATABASE, BUNDLE, CONFIG = FILES / "attempts.sqlite", FILES / "ranked.bundle", FILES / "batch.toml"

FIXED = (
    "what is stored or promised has changed; if that is deliberate, say so in CHANGELOG.md and run python -m "
    "tests.golden.make with the file's name"
)


def load(name: str) -> Any:
    """The JSON value of a golden file."""
    return json.loads((FILES / name).read_text(encoding="utf-8"))


def save(name: str, value: Any) -> None:
    """Writes a golden file anew: sorted, and a line for each entry, so that a change is readable."""
    text = json.dumps(value, indent=1, sort_keys=True, ensure_ascii=False)
    (FILES / name).write_text(text + "\n", encoding="utf-8")


def workspace(folder: Path) -> Path:
    """A workspace with a copy of the database, its suite and the configuration of its unfinished run."""
    (folder / "db").mkdir(parents=True)
    shutil.copy(DATABASE, folder / "db" / "attempts.sqlite")
    shutil.copy(CONFIG, folder)
    shutil.copytree(FILES / "problems", folder / "problems")
    return folder


def scripted_provider(program: Program, folder: Path) -> None:
    """Has the commands of a program find the provider of the unfinished run."""
    source = (FILES / "scripted_answers.py").read_text()
    install(folder, "scripted_answers", source, providers={"scripted": "scripted_answers:Scripted"})
    program.extra = {**program.extra, "PYTHONPATH": f"{folder}:{program.environment['PYTHONPATH']}"}
