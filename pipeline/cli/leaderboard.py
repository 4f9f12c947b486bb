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
    from collections.abc import Sequence

    from kernelproof.db.scores.comparing import Comparison
    from kernelproof.db.scores.filters import Filters
    from kernelproof.db.scores.queries import ScoreQueries
    from kernelproof.db.scores.records import Leaderboard, ViewName
    from kernelproof.db.scores.reported_results import Claims
    from kernelproof.report.board_columns import Flat
    from kernelproof.report.export.files import Typeset

_WIDE = 2000
"""Characters of a table with all its columns, at most."""
_VIEWS = ("model", "problem", "kernel", "run", "template", "strategy")


@dataclass(frozen=True)
class FormOptions:
    """Another form than tables on screen; at most one is given."""

    as_json: Annotated[bool, Option("Everything, as JSON.", names=("--json",))] = False
    as_csv: Annotated[bool, Option("The table (by problem) as CSV.", names=("--csv",))] = False
    as_markdown: Annotated[
        bool, Option("Six columns of it as Markdown, for a README.", names=("--markdown",))
    ] = False
    as_latex: Annotated[bool, Option("The same as LaTeX, for a paper.", names=("--latex",))] = False
    parquet: Annotated[
        Path | None,
        Option("Its columns in a Parquet file. Needs the extra parquet.", names=("--parquet", "-o")),
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
    wide: Annotated[bool, Option("All columns, however wide; with --markdown and --latex too.")] = False,
    options: FilterOptions,
    claims: Annotated[bool, Option("What was claimed of imported programs, beside the verdicts.")] = False,
    forms: FormOptions,
    storage: StorageOptions,
) -> None:
    """Show verified results: the best speedup of each problem, and how often each model is right and fast."""
    from kernelproof.db.scores.queries import open_scores

    form = only_one(forms)
    others = [name for name, given in {"--by": by, "--compare": compare}.items() if given]
    if form in ("markdown", "latex", "parquet"):
        others.append(f"--{form}")
    if wide and (claims or form in ("json", "csv", "parquet")):
        refuse_several(["--wide", "--claims" if claims else f"--{form}"])
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
            _print_comparisons(scores.comparison(*compare, by, filters), form, forms.parquet, wide)  # type: ignore[arg-type]
        else:
            _print_board(scores, by, top, filters, form, forms.parquet, wide, storage.option)


def _print_board(
    scores: ScoreQueries,
    by: str | None,
    top: int,
    filters: Filters,
    form: str | None,
    parquet: Path | None,
    wide: bool,
    where: str,
) -> None:
    exported = form not in (None, "json")
    views: list[ViewName] = [by] if by else ["problem"] if exported else ["model", "problem"]  # type: ignore[list-item]
    board: Leaderboard = scores.leaderboard(filters, views, top)
    if form == "json":
        print(json_text(board))
    elif form in ("markdown", "latex") and not wide:
        from kernelproof.report.leaderboard import pasted

        _typeset(pasted(board, views[0], scores.details(board)), form)
    elif exported:
        from kernelproof.report.board_columns import flat

        _export(flat(board, views[0]), form, parquet)
    else:
        from kernelproof.report.leaderboard import print_leaderboard

        console = screen(width=_WIDE if wide else None)
        print_leaderboard(board, console, scores.details(board), wide=wide, where=where)


def _print_comparisons(
    found: tuple[Comparison, ...], form: str | None, parquet: Path | None, wide: bool
) -> None:
    from kernelproof.report.board_columns import flat_comparisons
    from kernelproof.report.leaderboard import pasted_comparisons, print_comparisons

    if form == "json":
        print(json_line(found))
    elif form in ("markdown", "latex") and not wide:
        _typeset(pasted_comparisons(found), form)
    elif form:
        _export(flat_comparisons(found), form, parquet)
    else:
        print_comparisons(found, screen(width=_WIDE if wide else None))


def _export(rows: Flat, form: str | None, parquet: Path | None) -> None:
    from kernelproof.report.export.files import as_csv, every_column, write_parquet

    if parquet is not None:
        write_parquet(rows.fields, rows.rows, parquet, clean)
    elif form == "csv":
        print(as_csv(rows), end="")
    else:
        _typeset([every_column(rows)], form)


def _typeset(tables: Sequence[Typeset], form: str | None) -> None:
    from kernelproof.report.export.files import as_latex, as_markdown

    print(as_latex(tables) if form == "latex" else as_markdown(tables), end="")


def _print_claims(claims: Claims, form: str | None) -> None:
    from kernelproof.report.leaderboard import claims_csv, print_claims

    if form == "json":
        print(json_text(claims))
    elif form == "csv":
        print(claims_csv(claims), end="")
    else:
        print_claims(claims, screen())
