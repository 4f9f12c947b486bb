"""`kernelproof export`: attempts in the formats of other tools."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated

import typer

from kernelproof.choices import RewardName
from kernelproof.cli.declaring import Argument, Option
from kernelproof.cli.options import FilterOptions, StorageOptions
from kernelproof.errors import UsageError
from kernelproof.report.plain import say

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
