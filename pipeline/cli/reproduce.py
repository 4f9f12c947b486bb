"""`kernelproof reproduce`: anybody's number, checked on this machine."""

from __future__ import annotations

from typing import Annotated

import typer

from pipeline.cli.common import JsonOption, UnsafeOption, WorkspaceOption


def reproduce(
    attempt: Annotated[str, typer.Argument(help="The attempt's number (17 or '#17'), or: last.")],
    workspace: WorkspaceOption = None,
    as_json: JsonOption = False,
    unsafe: UnsafeOption = False,
) -> None:
    """Extract, build and verify an attempt again from what is stored, and compare.

    Exit code 0 when the stored result stands (same or faster), 1 otherwise.
    """
    from db.store import open_store
    from pipeline.engine.engine import Engine
    from pipeline.report.plain import screen
    from pipeline.report.reproduction import print_reproduction
    from pipeline.runs.reproduction import reproduce as run
    from pipeline.workspace import open_workspace

    with (
        open_store(open_workspace(workspace).database, create=False) as store,
        Engine(unsafe=unsafe) as engine,
    ):
        result = run(store, store.resolve_attempt(attempt), engine)
    if as_json:
        print(result.model_dump_json(indent=1))
    else:
        print_reproduction(result, screen())
    if not result.finding.confirms:
        raise typer.Exit(1)
