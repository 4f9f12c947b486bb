"""The documentation's site: what the program fills in, and the strict build."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import pytest
from typer.main import get_command

from kernelproof.cli.app import command_line
from kernelproof.db.models import TABLES, Base
from kernelproof.db.sql_views import VIEWS
from kernelproof.report.board_columns import COMPARED, Field
from kernelproof.report.board_columns import FIELDS as COLUMNS
from kernelproof.report.export.columns import FIELDS as EXPORTED
from kernelproof.report.export.formats import REWARDS
from kernelproof.verifier import status_rules
from kernelproof.verifier.policy import RULES
from kernelproof.verifier.referee.plan import PLAN
from kernelproof.verifier.status_rules import CheckKind
from scripts import site_pages

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"


def commands() -> Iterable[str]:
    """The line that calls the help of each command and group."""
    return _helps("kernelproof", get_command(command_line()))


def _helps(name: str, command: Any) -> Iterable[str]:
    yield f"$ {name} --help"
    for word, inner in getattr(command, "commands", {}).items():
        yield from _helps(f"{name} {word}", inner)


def schema() -> Iterable[str]:
    for model in TABLES:
        table = Base.metadata.tables[model.__tablename__]
        yield from (f"## {table.name}\n", *(f"| `{column.name}` |" for column in table.columns))
    for view in VIEWS:
        yield from (f"### {view.name}\n", *(f"| `{column}` |" for column in view.columns))


def columns() -> Iterable[str]:
    return (f"| `{field.name}` |" for fields in (*COLUMNS.values(), COMPARED) for field in fields)


def exported() -> Iterable[str]:
    return (f"| `{name}` |" for name in (*(field.name for field in EXPORTED), *REWARDS))


def kinds() -> Iterable[str]:
    return (f"| `{kind.name}` |" for kind in vars(status_rules).values() if isinstance(kind, CheckKind))


def lines(*names: str) -> Callable[[], Iterable[str]]:
    return lambda: (f"| `{name}` |" for name in names)


@pytest.mark.parametrize(
    ("page", "expected"),
    [
        ("reference/cli.md", commands),
        ("reference/schema.md", schema),
        ("reference/leaderboard.md", columns),
        ("reference/export.md", exported),
        ("reference/policy.md", lines(*(rule.name for rule in RULES))),
        ("rationale/kernels.md", kinds),
        ("architecture.md", lines(*(stage.name for stage in PLAN))),
    ],
)
def test_a_generated_page_holds_what_the_program_has(
    page: str, expected: Callable[[], Iterable[str]]
) -> None:
    text = site_pages.complete((DOCS / page).read_text())
    wanted = list(expected())
    assert len(wanted) > 9 and [line for line in wanted if line not in text] == []


def test_no_command_has_two_blocks_and_none_is_left_over() -> None:
    page = (DOCS / "reference" / "cli.md").read_text()
    named = [f"$ kernelproof {part[2]} --help".replace("  ", " ") for part in site_pages.PART.finditer(page)]
    assert sorted(named) == sorted(commands())


@pytest.mark.parametrize("fields", [*COLUMNS.values(), COMPARED, EXPORTED])
def test_no_column_is_there_twice(fields: Sequence[Field]) -> None:
    names = [field.name for field in fields]
    assert len(names) == len(set(names))


@pytest.mark.ci
def test_the_site_builds_strictly(tmp_path: Path) -> None:
    """Broken links, missing headings and pages that no navigation names are errors."""
    build = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(tmp_path)]
    environment = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    built = subprocess.run(build, cwd=ROOT, env=environment, capture_output=True, text=True)
    assert built.returncode == 0, built.stdout + built.stderr
    assert "attempts_flat" in (tmp_path / "reference" / "schema" / "index.html").read_text()
