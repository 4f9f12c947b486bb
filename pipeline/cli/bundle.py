"""`kernelproof bundle`: one file from which a stranger reproduces a number."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from kernelproof.cli.completion import attempts
from kernelproof.cli.declaring import Argument, Option
from kernelproof.cli.options import (
    AllRankedOption,
    FilterOptions,
    OutputOption,
    StorageOptions,
    explicit_options,
)
from kernelproof.errors import UsageError
from kernelproof.report.plain import say
from kernelproof.wording import counted

if TYPE_CHECKING:
    from collections.abc import Iterator

    from kernelproof.db.store import Store
    from kernelproof.types.reproduction import Bundled


def bundle(
    attempt: Annotated[
        str | None,
        Argument(
            "The attempt's number (17 or '#17'), or: last [default: those that pass the filters].",
            offered=attempts,
        ),
    ] = None,
    *,
    context: typer.Context,
    output: OutputOption,
    sign: Annotated[
        Path | None, Option("SSH key that signs it, for reproduce --signers: <output>.sig is written too.")
    ] = None,
    all_ranked: AllRankedOption = False,
    options: FilterOptions,
    storage: StorageOptions,
) -> None:
    """Write an attempt, or the best of each problem, to one file, for kernelproof reproduce elsewhere."""
    from kernelproof.db.store import open_store
    from kernelproof.runs.bundles.signing import signature_of
    from kernelproof.runs.bundles.writer import write_bundle

    filtered = all_ranked or bool(explicit_options(options, context))
    if (attempt is not None) is filtered:
        raise UsageError("give one attempt, or filters as leaderboard takes them, or --all-ranked")
    with open_store(storage.database, only_read=True) as store:
        chosen = list(_chosen(store, attempt, options))
        sha256, size = write_bundle(chosen, output, sign)
    say(f"{output}: {counted(len(chosen), 'attempt')}, {size / 1000:,.0f} kB, sha256 {sha256}")
    if sign is not None:
        say(f"{signature_of(output)}: its signature")


def _chosen(store: Store, attempt: str | None, options: FilterOptions) -> Iterator[Bundled]:
    from kernelproof.runs.bundles.writer import bundled
    from kernelproof.runs.reproduction import leaders

    if attempt is not None:
        yield bundled(store, store.resolve_attempt(attempt))
        return
    for leader in leaders(store, options.filters()):
        yield bundled(store, leader.best.attempt_id, leader.best.verification_id)
