"""Fills in what the documentation takes from the program: help texts, tables, columns, checks.

A page names each such part: `<!-- generated: help generate -->`, `<!-- generated: schema -->`. MkDocs calls
`on_page_markdown` for each page (mkdocs.yml, `hooks`); `python scripts/site_pages.py PAGE` prints one page.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any
from unittest import mock

from kernelproof.cli.app import command_line
from kernelproof.db.documentation import schema_markdown
from kernelproof.report.board_columns import document as leaderboard_columns
from kernelproof.report.export.documentation import document as export_columns
from kernelproof.verifier.policy import RULES
from kernelproof.verifier.referee.plan import PLAN
from kernelproof.verifier.status_rules import CheckKind

PART = re.compile(r"^<!-- generated: (\w+) ?([a-z -]*?) ?-->$", re.MULTILINE)


def help_text(command: str = "") -> str:
    """What `kernelproof COMMAND --help` prints, 80 columns wide, as a block of Markdown."""
    words = [*command.split(), "--help"]
    output = io.StringIO()
    with mock.patch.dict(os.environ, {"COLUMNS": "80", "NO_COLOR": "1"}), contextlib.redirect_stdout(output):
        command_line()(words, prog_name="kernelproof", standalone_mode=False)
    shown = " ".join(("kernelproof", *words))
    return f"```console\n$ {shown}\n{output.getvalue().rstrip()}\n```"


def _table(heading: str, *rows: str) -> str:
    return "\n".join([f"| {heading} |", "|" + "---|" * (heading.count("|") + 1), *rows])


def _code(words: Iterable[object]) -> str:
    return ", ".join(f"`{word}`" for word in words)


def stages() -> str:
    """The stages of the verification plan, with the statuses that each may end in."""
    rows = (f"| `{stage.name}` | {stage.does} | {_code(stage.may_end)} |" for stage in PLAN)
    return _table("stage | what it does | may end as", *rows)


def checks() -> str:
    """The checks of the plan, in its order, with what a failure leads to."""
    kinds = [kind for stage in PLAN for kind in stage.checks if not kind.name.endswith(" again")]
    rows = (f"| `{kind.name}` | {kind.question} | {_outcome(kind)} |" for kind in kinds)
    return _table("check | question | otherwise", *rows)


def _outcome(kind: CheckKind) -> str:
    outcomes = [f"`{status}`" for status in kind.may_end] + [f"flag `{flag}`" for flag in kind.flags]
    return ", ".join(outcomes) or "it is noted"


def rules() -> str:
    """The rules of the policy."""
    rows = (f"| `{rule.name}` | {rule.severity.value} | {rule.description} |" for rule in RULES)
    return _table("rule | severity | what is found", *rows)


def _untitled(page: Callable[[], str]) -> Callable[[], str]:
    """A whole page without its title, which the file in docs/ has already."""
    return lambda: page().partition("\n")[2].strip("\n")


PARTS: dict[str, Callable[..., str]] = {
    "help": help_text,
    "stages": stages,
    "checks": checks,
    "rules": rules,
    "schema": _untitled(schema_markdown),
    "leaderboard": _untitled(leaderboard_columns),
    "export": _untitled(export_columns),
}


def complete(markdown: str) -> str:
    """The page with every part that it names. `KeyError` for a part that there is not."""
    return PART.sub(lambda part: PARTS[part[1]](*filter(None, [part[2]])), markdown)


def on_page_markdown(markdown: str, **_: Any) -> str:
    """MkDocs' event: a page has been read."""
    # The site has no page for files outside of docs/.
    return re.sub(r"\[([^\]]+)\]\((?:\.\./)+[A-Z]+\.md[^)]*\)", r"\1", complete(markdown))


if __name__ == "__main__":
    print(complete(Path(sys.argv[1]).read_text()), end="")
