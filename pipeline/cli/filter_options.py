"""The options that filter stored attempts, for every command that shows scores."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date
from typing import TYPE_CHECKING, Annotated, Any

import typer

from kernelproof.backends import names
from kernelproof.bounds import LEVEL, TURNS
from kernelproof.choices import ErrorClass, Flag, Numerics, Purity, Rigor, RunKind
from kernelproof.cli.completion import models, problems, runs
from kernelproof.cli.options import choice, nonempty_text, number

if TYPE_CHECKING:
    from kernelproof.db.scores.filters import Filters


AllRankedOption = Annotated[
    bool,
    typer.Option("--all-ranked", help="The best of each problem of every board."),
]


def _text(sentence: str, *flags: str, **more: Any) -> Any:
    return typer.Option(*flags, parser=nonempty_text, help=sentence, **more)


def _day(text: str) -> date:
    try:
        return date.fromisoformat(text)
    except ValueError:
        raise typer.BadParameter(f"{text!r} is no day; give one like 2026-01-31.") from None


def _date(sentence: str) -> Any:
    return typer.Option(parser=_day, metavar="<YYYY-MM-DD>", help=sentence)


@dataclass(frozen=True)
class FilterOptions:
    """Which stored attempts count. All that are given must let an attempt pass."""

    problem: Annotated[
        str | None,
        _text("Problem id, name, folder or glob: level1/23, level1, '*max'.", autocompletion=problems),
    ] = None
    level: Annotated[int | None, number(LEVEL, "Problems of this level only.")] = None
    suite: Annotated[str | None, _text("Problems of this suite only.")] = None
    model: Annotated[str | None, _text("Part of the model's name.", autocompletion=models)] = None
    template: Annotated[str | None, _text("Prompts of this template only, such as basic-v3.")] = None
    strategy: Annotated[str | None, _text("This search strategy only, such as refine.")] = None
    run: Annotated[str | None, _text("The run of this name or number only.", autocompletion=runs)] = None
    tag: Annotated[str | None, _text("Runs with this tag only (kernelproof tag).")] = None
    kind: Annotated[
        RunKind | None, choice(RunKind, "Answers of models, files, imported programs, or what a tuner tried.")
    ] = None
    turns: Annotated[int | None, number(TURNS, "Only the first so many turns of each sample.")] = None
    since: Annotated[date | None, _date("Attempts begun on this day (UTC) or later.")] = None
    until: Annotated[date | None, _date("Attempts begun on this day (UTC) or earlier.")] = None
    gpu: Annotated[str | None, _text("Part of the GPU's or CPU's name.", "--gpu", "--device")] = None
    backend: Annotated[str | None, choice(names(), "One backend only.")] = None
    size: Annotated[str | None, _text("One size preset only: full, small.")] = None
    numerics: Annotated[Numerics | None, choice(Numerics, "Verifications with these numerics only.")] = None
    purity: Annotated[Purity | None, choice(Purity, "Verifications with this purity only.")] = None
    rigor: Annotated[Rigor | None, choice(Rigor, "Verifications of this rigor only.")] = None
    policy: Annotated[
        str,
        _text(
            "Verifications under this policy only: current, any (the newest of each attempt), or its name.",
            metavar="<policy>",
        ),
    ] = "current"
    without: Annotated[
        list[Flag] | None, choice(Flag, "Correct ones with this flag do not count; may be repeated.")
    ] = None
    error_class: Annotated[
        ErrorClass | None, choice(ErrorClass, "Correct ones of a worse error class do not count.")
    ] = None

    def filters(self) -> Filters:
        """The filters that the options stand for."""
        from kernelproof.db.scores.filters import Filters

        given = {**self.__dict__, "device": self.gpu}
        given["without"] = tuple(flag for flag in Flag if flag in (self.without or ()))
        del given["gpu"]
        return Filters.model_validate(given)
