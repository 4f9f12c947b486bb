"""`kernelproof report`: the results as one HTML file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from kernelproof.bounds import KERNELS
from kernelproof.cli.filter_options import FilterOptions
from kernelproof.cli.options import StorageOptions, given_path, number, takes_options


@takes_options
def report(
    *,
    output: Annotated[
        Path,
        typer.Option("--output", "-o", parser=given_path, metavar="<path>", help="The file that is written."),
    ] = Path("report.html"),
    kernels: Annotated[int, number(KERNELS, "Kernels with a section of their own, the best first.")] = 20,
    options: FilterOptions,
    storage: StorageOptions,
) -> None:
    """Write the results as one HTML file that needs no network: tables, charts, kernels with their evidence.

    It needs pip install 'kernelproof[report]'.
    """
    from kernelproof.report.html.drawing import require

    require()
    from datetime import UTC, datetime

    from kernelproof.db.store import open_store
    from kernelproof.report.html.gathering import gather
    from kernelproof.report.html.page import page
    from kernelproof.report.html.writing import write
    from kernelproof.report.plain import say

    with open_store(storage.database, only_read=True) as store:
        found = gather(store, options.filters(), kernels)
    size = write(page(found, datetime.now(UTC).date().isoformat()), output)
    say(f"{output}: {size / 1000:,.0f} kB")
