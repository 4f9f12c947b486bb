"""`kernelproof export`: attempts in the formats of other tools."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from kernelproof.choices import RewardName
from kernelproof.cli.filter_options import FilterOptions
from kernelproof.cli.options import StorageOptions, choice, given_path, takes_options

if TYPE_CHECKING:
    from kernelproof.report.export.gathering import Export

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


@takes_options
def export(
    form: Annotated[
        str,
        typer.Argument(
            parser=_format,
            metavar="FORMAT",
            help="; ".join(f"{name}: {meaning}" for name, meaning in FORMATS.items()) + ".",
            autocompletion=lambda incomplete: [name for name in FORMATS if name.startswith(incomplete)],
        ),
    ],
    output: Annotated[
        Path,
        typer.Option(
            "--output", "-o", parser=given_path, metavar="<path>", help="The file or folder that is written."
        ),
    ],
    *,
    reward: Annotated[RewardName | None, choice(RewardName, "The reward of pairs [default: score].")] = None,
    licence: Annotated[
        str | None,
        typer.Option(
            "--license",
            parser=_licence,
            metavar="<license>",
            help="The licence that the card of huggingface names [default: unknown].",
        ),
    ] = None,
    options: FilterOptions,
    storage: StorageOptions,
) -> None:
    """Write attempts for other tools: those that count on the leaderboard under the same filters, every turn.

    parquet and huggingface need pip install 'kernelproof[parquet]'.
    """
    from kernelproof.db.store import open_store
    from kernelproof.errors import UsageError
    from kernelproof.report.export import columnar
    from kernelproof.report.export.gathering import gather
    from kernelproof.report.plain import say

    if reward is not None and form != "pairs":
        raise UsageError("--reward is for pairs; leave it out")
    if licence is not None and form != "huggingface":
        raise UsageError("--license is for huggingface; leave it out")
    if form in ("parquet", "huggingface"):
        columnar.require()
    with open_store(storage.database, only_read=True) as store:
        found = gather(store, options.filters())
        for line in _written(form, found, output, reward or "score", licence or _DEFAULT_LICENCE):
            say(line)
        for remark in found.remarks:
            say(remark)


def _written(form: str, found: Export, output: Path, reward: RewardName, licence: str) -> list[str]:
    """Writes the export; what is to be said of it."""
    from kernelproof.report.export import columnar, huggingface, inspect_log, kernelbench, lines
    from kernelproof.report.export.writing import new_file, new_folder
    from kernelproof.wording import counted

    if form in ("huggingface", "kernelbench", "inspect"):
        with new_folder(output) as folder:
            if form == "huggingface":
                return [f"{output}: {counted(huggingface.write(found, folder, licence), 'row')}"]
            if form == "inspect":
                logs, samples = inspect_log.write(found, folder)
                return [f"{output}: {counted(logs, 'log')} with {counted(samples, 'sample')}"]
            done = kernelbench.write(found, folder)
            return [
                f"{output}: {counted(done.samples, 'sample')}",
                *_left_out(done.elsewhere, "sample", "their problems are not numbered in a level"),
                *_left_out(done.unjudged, "sample", "the machine or the server failed, not the model"),
            ]
    with new_file(output) as file:
        if form == "jsonl":
            return [f"{output}: {counted(lines.write_attempts(found, file), 'attempt')}"]
        if form == "parquet":
            return [f"{output}: {counted(columnar.write(found.rows(), file), 'row')}"]
        pairs = lines.write_pairs(found, file, reward)
        return [
            f"{output}: {counted(pairs.written, 'pair')}",
            *_left_out(pairs.without_question, "attempt", "without a question or an answer"),
            *_left_out(pairs.without_reward, "attempt", f"without what the reward {reward} needs"),
        ]


def _left_out(count: int, noun: str, why: str) -> list[str]:
    from kernelproof.wording import counted

    return [f"{counted(count, noun)} left out: {why}."] if count else []
