"""`kernelproof show`: everything stored about one attempt."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

from pipeline.cli.common import WorkspaceOption


class Part(StrEnum):
    """What of an attempt is shown."""

    PROMPT = "prompt"
    RESPONSE = "response"
    SOURCE = "source"
    LOG = "log"
    CHECKS = "checks"
    ALL = "all"


def show(
    attempt: Annotated[str, typer.Argument(help="The attempt's number (17 or '#17'), or: last.")] = "last",
    part: Annotated[Part, typer.Option(help="Only this part.")] = Part.ALL,
    as_json: Annotated[bool, typer.Option("--json", help="Everything, exactly as stored, as JSON.")] = False,
    workspace: WorkspaceOption = None,
) -> None:
    """Show an attempt: prompt, response, source, build log, checks with evidence, times, environment."""
    from db.store import open_store
    from pipeline.report.plain import json_text, screen
    from pipeline.report.show import print_attempt
    from pipeline.workspace import open_workspace

    with open_store(open_workspace(workspace).database, only_read=True) as store:
        stored = store.load_attempt(store.resolve_attempt(attempt))
    if as_json:
        print(json_text(stored))
    else:
        print_attempt(stored, screen(), part.value)
