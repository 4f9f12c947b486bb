"""`kernelproof report`: the results as one HTML file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from kernelproof.choices import KERNELS
from kernelproof.cli.declaring import Option
from kernelproof.cli.options import FilterOptions, OutputOption, StorageOptions
from kernelproof.report.plain import say


def report(
    *,
    output: OutputOption = Path("report.html"),
    kernels: Annotated[int, Option("Kernels with a section of their own, the best first.", KERNELS)] = 20,
    options: FilterOptions,
    storage: StorageOptions,
) -> None:
    """Write the results as one HTML file that needs no network: tables, charts, kernels with evidence."""
    from kernelproof.db.store import open_store
    from kernelproof.report.web.pages import board, write

    with open_store(storage.database, only_read=True) as store:
        content = board(store, options.filters(), kernels=kernels)
    say(f"{output}: {write(content, output) / 1000:,.0f} kB")
