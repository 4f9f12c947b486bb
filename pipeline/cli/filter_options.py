"""The options that filter stored attempts, for every command that shows scores."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date
from typing import TYPE_CHECKING, Annotated

from kernelproof.backends import names
from kernelproof.bounds import LEVEL, TURNS
from kernelproof.choices import ErrorClass, Flag, Numerics, Purity, Rigor, RunKind
from kernelproof.cli.completion import models, problems, runs
from kernelproof.cli.declaring import Option

if TYPE_CHECKING:
    from kernelproof.db.scores.filters import Filters


AllRankedOption = Annotated[bool, Option("The best of each problem of every board.")]


@dataclass(frozen=True)
class FilterOptions:
    """Which stored attempts count. All that are given must let an attempt pass."""

    problem: Annotated[
        str | None, Option("Problem id, name, folder or glob: level1/23, level1, '*max'.", offered=problems)
    ] = None
    level: Annotated[int | None, Option("Problems of this level only.", LEVEL)] = None
    suite: Annotated[str | None, Option("Problems of this suite only.")] = None
    model: Annotated[str | None, Option("Part of the model's name.", offered=models)] = None
    template: Annotated[str | None, Option("Prompts of this template only, such as basic-v3.")] = None
    strategy: Annotated[str | None, Option("This search strategy only, such as refine.")] = None
    run: Annotated[str | None, Option("The run of this name or number only.", offered=runs)] = None
    tag: Annotated[str | None, Option("Runs with this tag only (kernelproof tag).")] = None
    kind: Annotated[
        RunKind | None, Option("Answers of models, files, imported programs, or what a tuner tried.")
    ] = None
    turns: Annotated[int | None, Option("Only the first so many turns of each sample.", TURNS)] = None
    since: Annotated[date | None, Option("Attempts begun on this day (UTC) or later.")] = None
    until: Annotated[date | None, Option("Attempts begun on this day (UTC) or earlier.")] = None
    gpu: Annotated[str | None, Option("Part of the GPU's or CPU's name.", names=("--gpu", "--device"))] = None
    backend: Annotated[str | None, Option("One backend only.", words=names())] = None
    size: Annotated[str | None, Option("One size preset only: full, small.")] = None
    numerics: Annotated[Numerics | None, Option("Verifications with these numerics only.")] = None
    purity: Annotated[Purity | None, Option("Verifications with this purity only.")] = None
    rigor: Annotated[Rigor | None, Option("Verifications of this rigor only.")] = None
    policy: Annotated[
        str,
        Option(
            "Verifications under this policy only: current, any (the newest of each attempt), or its name.",
            metavar="<policy>",
        ),
    ] = "current"
    without: Annotated[
        list[Flag] | None, Option("Correct ones with this flag do not count; may be repeated.")
    ] = None
    error_class: Annotated[ErrorClass | None, Option("Correct ones of a worse error class do not count.")] = (
        None
    )

    def filters(self) -> Filters:
        """The filters that the options stand for."""
        from kernelproof.db.scores.filters import Filters

        given = {**self.__dict__, "device": self.gpu}
        given["without"] = tuple(flag for flag in Flag if flag in (self.without or ()))
        del given["gpu"]
        return Filters.model_validate(given)
