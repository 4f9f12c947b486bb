"""`kernelproof report`, `serve` and `export`: the results as one HTML file, in a browser, for other tools."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from kernelproof.choices import KERNELS, PORT, RewardName
from kernelproof.cli.declaring import Argument, Option
from kernelproof.cli.options import FilterOptions, OutputOption, StorageOptions
from kernelproof.errors import UsageError
from kernelproof.report.plain import say

if TYPE_CHECKING:
    from collections.abc import Sequence

    from kernelproof.report.web.facts import Board


def report(
    *,
    output: OutputOption = Path("report.html"),
    title: Annotated[str | None, Option("The page's title [default: what the data say].")] = None,
    figures: Annotated[
        Path | None, Option("A folder: the forest plot and the curve of fast_p as SVG and PNG, for a paper.")
    ] = None,
    kernels: Annotated[int, Option("Kernels with a section of their own, the best first.", KERNELS)] = 20,
    options: FilterOptions,
    storage: StorageOptions,
) -> None:
    """Write the results as one HTML file that needs no network: tables, charts, kernels with evidence."""
    from kernelproof.db.store import open_store
    from kernelproof.report.web.facts import gather
    from kernelproof.report.web.pages import board, write
    from kernelproof.runs.bundles.writer import bundle_bytes

    filters = options.filters()
    with open_store(storage.database, only_read=True) as store:
        found = gather(store, filters, kernels, bundle_bytes)
        content = board(store, filters, report=found, title=title)
    drawn = _figures(found.boards, figures, title) if figures else []
    say(f"{output}: {write(content, output) / 1000:,.0f} kB")
    for path in drawn:
        say(str(path))


def _figures(boards: Sequence[Board], folder: Path, title: str | None) -> list[Path]:
    from kernelproof.errors import install_command
    from kernelproof.report.web.figures import write_figures

    paths = write_figures(boards, folder, title)
    if all(path.suffix == ".svg" for path in paths):
        say(f"no PNG: vl-convert is missing; {install_command('figures')}", err=True)
    return paths


DEFAULT_PORT = 8177


def serve(
    *,
    host: Annotated[
        str, Option("The address to listen on. Other machines reach any but this one.")
    ] = "127.0.0.1",
    port: Annotated[int, Option("The port to listen on; 0 takes one that is free.", PORT)] = DEFAULT_PORT,
    storage: StorageOptions,
) -> None:
    """Show the results in a browser, and what is new while runs go on. Ctrl-C ends it.

    It shows what kernelproof report writes, and a page for every attempt. It only reads.
    It needs the packages of the extra serve, and says how to install them.
    """
    from kernelproof.report.web import require

    require()
    from kernelproof.report.web.result_server import serve as run
    from kernelproof.runs.bundles.writer import bundle_bytes

    database = storage.database

    def ready(address: str, public: bool) -> None:
        say(f"{address} shows {database}; Ctrl-C ends it")
        if public:
            say("every machine that reaches this address can read all of it", err=True)

    run(database, host, port, ready, bundle_bytes)


FORMATS = {
    "jsonl": "all of each attempt",
    "parquet": "a row for each attempt",
    "huggingface": "a data set's folder",
    "kernelbench": "eval_results.json",
    "pairs": "prompt, response, reward",
    "inspect": "logs of inspect-ai",
}
_DEFAULT_LICENCE = "unknown"


def _format(text: str) -> str:
    if text not in FORMATS:
        raise typer.BadParameter(f"{text!r} is no format; there are: {', '.join(FORMATS)}.")
    return text


def _licence(text: str) -> str:
    if not re.fullmatch(r"[a-z0-9][a-z0-9.+-]{0,60}", text):
        raise typer.BadParameter("give a licence as Hugging Face names it: apache-2.0, cc-by-4.0, other.")
    return text


def export(
    form: Annotated[
        str,
        Argument(
            "; ".join(f"{name}: {meaning}" for name, meaning in FORMATS.items()) + ".",
            parser=_format,
            metavar="FORMAT",
            offered=lambda incomplete: [name for name in FORMATS if name.startswith(incomplete)],
        ),
    ],
    output: Annotated[Path, Option("The file or folder that is written.", names=("--output", "-o"))],
    *,
    reward: Annotated[RewardName | None, Option("The reward of pairs [default: score].")] = None,
    licence: Annotated[
        str | None,
        Option(
            "The licence that the card of huggingface names [default: unknown].",
            names=("--license",),
            parser=_licence,
            metavar="<license>",
        ),
    ] = None,
    options: FilterOptions,
    storage: StorageOptions,
) -> None:
    """Write attempts for other tools: those that count on the leaderboard under the same filters, every turn.

    parquet and huggingface need the packages of the extra parquet.
    """
    from kernelproof.db.store import open_store
    from kernelproof.report.export.columns import gather
    from kernelproof.report.export.files import require_pyarrow
    from kernelproof.report.export.formats import write

    if reward is not None and form != "pairs":
        raise UsageError("--reward is for pairs; leave it out")
    if licence is not None and form != "huggingface":
        raise UsageError("--license is for huggingface; leave it out")
    if form in ("parquet", "huggingface"):
        require_pyarrow("export jsonl")
    with open_store(storage.database, only_read=True) as store:
        found = gather(store, options.filters())
        first, *rest = write(
            form, found, output, reward=reward or "score", licence=licence or _DEFAULT_LICENCE
        )
        for line in (f"{output}: {first}", *rest, *found.remarks):
            say(line)
