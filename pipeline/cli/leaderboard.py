"""`kernelproof leaderboard`: best speedups by problem, rates by model."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

from pipeline.cli.common import (
    Backend,
    ErrorClassChoice,
    FlagChoice,
    NumericsChoice,
    PurityChoice,
    WorkspaceOption,
    nonempty_text,
)


class Kind(StrEnum):
    """The kinds of run a leaderboard can be narrowed to."""

    GENERATE = "generate"
    VERIFY = "verify"


def leaderboard(
    problem: Annotated[
        str | None,
        typer.Option(
            parser=nonempty_text, help="Problem id, name, folder or glob: level1/23, level1, '*max'."
        ),
    ] = None,
    level: Annotated[int | None, typer.Option(help="Problems of this level only.")] = None,
    model: Annotated[str | None, typer.Option(parser=nonempty_text, help="Part of the model's name.")] = None,
    gpu: Annotated[
        str | None,
        typer.Option("--gpu", "--device", parser=nonempty_text, help="Part of the GPU's or CPU's name."),
    ] = None,
    backend: Annotated[Backend | None, typer.Option(help="One backend only.")] = None,
    size: Annotated[
        str | None, typer.Option(parser=nonempty_text, help="One size preset only: full, small.")
    ] = None,
    run: Annotated[str | None, typer.Option(parser=nonempty_text, help="The run of this name only.")] = None,
    kind: Annotated[
        Kind | None, typer.Option(help="Answers of models, or candidates given as files.")
    ] = None,
    numerics: Annotated[NumericsChoice | None, typer.Option(help="Runs with these numerics only.")] = None,
    purity: Annotated[PurityChoice | None, typer.Option(help="Runs with this purity only.")] = None,
    without: Annotated[
        list[FlagChoice] | None,
        typer.Option(
            metavar="<shape_specialised|layout_specialised|state_not_updated|weights_specialised>",
            help="Correct ones with this flag do not count; may be repeated.",
        ),
    ] = None,
    error_class: Annotated[
        ErrorClassChoice | None, typer.Option(help="Correct ones of a worse error class do not count.")
    ] = None,
    models: Annotated[bool, typer.Option("--models", help="Only the table of the models.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Everything, as JSON.")] = False,
    as_csv: Annotated[bool, typer.Option("--csv", help="The problems (or --models) as CSV.")] = False,
    workspace: WorkspaceOption = None,
) -> None:
    """Show the best verified speedup for each problem and how often each model is right."""
    from db.store import open_store
    from db.views import LeaderboardFilters
    from pipeline.errors import UsageError
    from pipeline.report.leaderboard import models_csv, print_leaderboard, problems_csv
    from pipeline.report.plain import json_text, screen
    from pipeline.workspace import open_workspace

    if as_json and as_csv:
        raise UsageError("--json and --csv exclude each other; give one of them")
    filters = LeaderboardFilters.model_validate(
        {
            "problem": problem,
            "level": level,
            "model": model,
            "device": gpu,
            "backend": backend,
            "size": size,
            "run": run,
            "kind": kind,
            "numerics": numerics,
            "purity": purity,
            "without": [flag for flag in FlagChoice if flag in (without or ())],
            "error_class": error_class,
        }
    )
    with open_store(open_workspace(workspace).database, only_read=True) as store:
        board = store.leaderboard(filters)
    if as_json:
        print(json_text(board))
    elif as_csv:
        print(models_csv(board) if models else problems_csv(board), end="")
    else:
        print_leaderboard(board, screen(), problems=not models)
