"""`kernelproof leaderboard`: best speedups by problem, rates by model."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from kernelproof.backends import names
from kernelproof.bounds import LEVEL
from kernelproof.choices import ErrorClass, Flag, Numerics, Purity, RunKind
from kernelproof.cli.completion import models, problems, runs
from kernelproof.cli.options import WorkspaceOption, choice, nonempty_text, number

if TYPE_CHECKING:
    from kernelproof.db.claims import Claims


def leaderboard(
    problem: Annotated[
        str | None,
        typer.Option(
            parser=nonempty_text,
            autocompletion=problems,
            help="Problem id, name, folder or glob: level1/23, level1, '*max'.",
        ),
    ] = None,
    level: Annotated[int | None, number(LEVEL, "Problems of this level only.")] = None,
    model: Annotated[
        str | None,
        typer.Option(parser=nonempty_text, autocompletion=models, help="Part of the model's name."),
    ] = None,
    gpu: Annotated[
        str | None,
        typer.Option("--gpu", "--device", parser=nonempty_text, help="Part of the GPU's or CPU's name."),
    ] = None,
    backend: Annotated[str | None, choice(names(), "One backend only.")] = None,
    size: Annotated[
        str | None, typer.Option(parser=nonempty_text, help="One size preset only: full, small.")
    ] = None,
    run: Annotated[
        str | None, typer.Option(parser=nonempty_text, autocompletion=runs, help="The run of this name only.")
    ] = None,
    kind: Annotated[
        RunKind | None, choice(RunKind, "Answers of models, files, imported programs, or what a tuner tried.")
    ] = None,
    numerics: Annotated[Numerics | None, choice(Numerics, "Runs with these numerics only.")] = None,
    purity: Annotated[Purity | None, choice(Purity, "Runs with this purity only.")] = None,
    without: Annotated[
        list[Flag] | None, choice(Flag, "Correct ones with this flag do not count; may be repeated.")
    ] = None,
    error_class: Annotated[
        ErrorClass | None, choice(ErrorClass, "Correct ones of a worse error class do not count.")
    ] = None,
    models: Annotated[bool, typer.Option("--models", help="Only the table of the models.")] = False,
    claims: Annotated[
        bool, typer.Option("--claims", help="What was claimed of imported programs, beside the verdicts.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Everything, as JSON.")] = False,
    as_csv: Annotated[bool, typer.Option("--csv", help="The problems (--models, --claims) as CSV.")] = False,
    workspace: WorkspaceOption = None,
) -> None:
    """Show the best verified speedup for each problem and how often each model is right."""
    from kernelproof.db.store import open_store
    from kernelproof.db.views import LeaderboardFilters
    from kernelproof.errors import UsageError
    from kernelproof.report.leaderboard import models_csv, print_leaderboard, problems_csv
    from kernelproof.report.plain import json_text, screen
    from kernelproof.workspace import open_workspace

    if as_json and as_csv:
        raise UsageError("--json and --csv exclude each other; give one of them")
    if models and claims:
        raise UsageError("--models and --claims exclude each other; give one of them")
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
            "without": [flag for flag in Flag if flag in (without or ())],
            "error_class": error_class,
        }
    )
    with open_store(open_workspace(workspace).database, only_read=True) as store:
        if claims:
            _print_claims(store.claims(filters), as_json, as_csv)
            return
        board = store.leaderboard(filters)
    if as_json:
        print(json_text(board))
    elif as_csv:
        print(models_csv(board) if models else problems_csv(board), end="")
    else:
        print_leaderboard(board, screen(), problems=not models)


def _print_claims(claims: Claims, as_json: bool, as_csv: bool) -> None:
    from kernelproof.report.claims import claims_csv, print_claims
    from kernelproof.report.plain import json_text, screen

    if as_json:
        print(json_text(claims))
    elif as_csv:
        print(claims_csv(claims), end="")
    else:
        print_claims(claims, screen())
