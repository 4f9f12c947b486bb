"""`kernelproof reproduce`: anybody's number, checked on this machine."""

from __future__ import annotations

import typer

from kernelproof.cli.options import AttemptArgument, JsonOption, UnsafeOption, WorkspaceOption


def reproduce(
    attempt: AttemptArgument,
    workspace: WorkspaceOption = None,
    as_json: JsonOption = False,
    unsafe: UnsafeOption = False,
) -> None:
    """Extract, build and verify an attempt again from what is stored, and compare.

    Exit code 0 when the stored result is confirmed (same or faster), 1 otherwise.
    """
    from kernelproof.db.store import open_store
    from kernelproof.engine.engine import Engine
    from kernelproof.report.plain import json_text, screen
    from kernelproof.report.reproduction import print_reproduction
    from kernelproof.runs.reproduction import reproduce as run
    from kernelproof.workspace import open_workspace

    with (
        open_store(open_workspace(workspace).database, create=False) as store,
        Engine(unsafe=unsafe) as engine,
    ):
        result = run(store, store.resolve_attempt(attempt), engine)
    if as_json:
        print(json_text(result))
    else:
        print_reproduction(result, screen())
    if not result.finding.confirms:
        raise typer.Exit(1)
