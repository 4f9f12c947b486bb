"""`kernelproof report`: the results as one HTML file."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from kernelproof.choices import KERNELS
from kernelproof.cli.declaring import Option
from kernelproof.cli.options import FilterOptions, OutputOption, StorageOptions
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
