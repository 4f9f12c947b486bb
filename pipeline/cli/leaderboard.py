"""`kernelproof leaderboard`: scores by model, problem, kernel, run, template or strategy."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from kernelproof.choices import TOP
from kernelproof.cli.declaring import Option
from kernelproof.cli.options import FilterOptions, StorageOptions, only_one, refuse_several
from kernelproof.errors import UsageError
from kernelproof.report.plain import clean, json_line, json_text, screen

if TYPE_CHECKING:
    from kernelproof.db.scores.comparing import Comparison
    from kernelproof.db.scores.filters import Filters
    from kernelproof.db.scores.queries import ScoreQueries
    from kernelproof.db.scores.records import Leaderboard, ViewName
    from kernelproof.db.scores.reported_results import Claims
    from kernelproof.report.board_columns import Flat

_VIEWS = ("model", "problem", "kernel", "run", "template", "strategy")


@dataclass(frozen=True)
class FormOptions:
    """Another form than tables on screen; at most one is given."""

    as_json: Annotated[bool, Option("Everything, as JSON.", names=("--json",))] = False
    as_csv: Annotated[bool, Option("The table (by problem) as CSV.", names=("--csv",))] = False
    as_markdown: Annotated[bool, Option("The same as Markdown.", names=("--markdown",))] = False
    parquet: Annotated[
        Path | None,
        Option(
            "The same in a Parquet file. Needs pip install 'kernelproof[parquet]'.", names=("--parquet", "-o")
        ),
    ] = None


def leaderboard(
    *,
    by: Annotated[
        str | None,
        Option("One table only; with --compare what is compared [default: two tables].", words=_VIEWS),
    ] = None,
    compare: Annotated[
        tuple[str, str] | None,
        typer.Option(metavar="<A> <B>", help="Two models, runs, templates or strategies, paired by problem."),
    ] = None,
    top: Annotated[int, Option("Kernels of each setting that --by kernel shows.", TOP)] = 20,
    options: FilterOptions,
    claims: Annotated[bool, Option("What was claimed of imported programs, beside the verdicts.")] = False,
    forms: FormOptions,
    storage: StorageOptions,
) -> None:
    """Show verified results: the best speedup of each problem, and how often each model is right and fast."""
    from kernelproof.db.scores.queries import open_scores

    form = only_one(forms)
    others = [name for name, given in {"--by": by, "--compare": compare}.items() if given]
    if form in ("markdown", "parquet"):
        others.append(f"--{form}")
    if claims:
        refuse_several(["--claims", *others[:1]])
    if compare and by in ("problem", "kernel"):
        raise UsageError(
            "--compare pairs by problem already; --by says which of model, run, template, strategy"
        )
    filters = options.filters()
    with open_scores(storage.database) as scores:
        if claims:
            _print_claims(scores.claims(filters), form)
        elif compare:
            _print_comparisons(scores, compare, by, filters, form, forms.parquet)
        else:
            _print_board(scores, by, top, filters, form, forms.parquet)


def _print_board(
    scores: ScoreQueries, by: str | None, top: int, filters: Filters, form: str | None, parquet: Path | None
) -> None:
    exported = form not in (None, "json")
    views: list[ViewName] = [by] if by else ["problem"] if exported else ["model", "problem"]  # type: ignore[list-item]
    board: Leaderboard = scores.leaderboard(filters, views, top)
    if form == "json":
        print(json_text(board))
    elif exported:
        from kernelproof.report.board_columns import flat

        _export(flat(board, views[0]), form, parquet)
    else:
        from kernelproof.report.leaderboard import print_leaderboard

        print_leaderboard(board, screen())


def _print_comparisons(
    scores: ScoreQueries,
    names: tuple[str, str],
    by: str | None,
    filters: Filters,
    form: str | None,
    parquet: Path | None,
) -> None:
    from kernelproof.report.board_columns import flat_comparisons
    from kernelproof.report.leaderboard import print_comparisons

    found: tuple[Comparison, ...] = scores.comparison(*names, by, filters)  # type: ignore[arg-type]
    if form == "json":
        print(json_line([comparison.model_dump() for comparison in found]))
    elif form:
        _export(flat_comparisons(found), form, parquet)
    else:
        print_comparisons(found, screen())


def _export(rows: Flat, form: str | None, parquet: Path | None) -> None:
    from kernelproof.report.export.files import as_csv, as_markdown, write_parquet

    if parquet is not None:
        write_parquet(rows.fields, rows.rows, parquet, clean)
    else:
        print(as_csv(rows) if form == "csv" else as_markdown(rows), end="")


def _print_claims(claims: Claims, form: str | None) -> None:
    from kernelproof.report.leaderboard import claims_csv, print_claims

    if form == "json":
        print(json_text(claims))
    elif form == "csv":
        print(claims_csv(claims), end="")
    else:
        print_claims(claims, screen())
