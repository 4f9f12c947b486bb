"""`kernelproof compare`: two kernels of one problem, and one interval: how many times as fast the new one is.

Both are verified one after the other, each timed against the reference, and `runs.tuning.gain` puts the two
speedups together. The interval is wider than that of either.
"""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from kernelproof.cli.completion import problems
from kernelproof.cli.declaring import Argument, Option
from kernelproof.cli.options import JsonOption, RunOption, StorageOptions, SuiteOption, VerifyOptions
from kernelproof.cli.verify import judge_each, read_one
from kernelproof.errors import KernelproofError, UsageError
from kernelproof.report.plain import clean, json_line, screen

if TYPE_CHECKING:
    from rich.console import Console

    from kernelproof.jobs import Verdict
    from kernelproof.runs.tuning import Gain


def compare(
    old: Annotated[Path, Argument("A candidate's source or a raw response, such as yesterday's kernel.")],
    new: Annotated[Path, Argument("Another for the same problem, such as today's.")],
    *,
    problem: Annotated[
        str | None, Option("The problem's id, name, or file.", parser=str, offered=problems)
    ] = None,
    options: VerifyOptions,
    suite: SuiteOption = None,
    storage: StorageOptions,
    store: Annotated[bool, Option("Keep both as attempts in the workspace.")] = True,
    run: RunOption = None,
    fail_if_slower: Annotated[bool, Option("Exit code 1 also when the new one is surely slower.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Verify two candidates of one problem, and compare their speed. Exit code 1 when one is not correct."""
    from kernelproof.runs.candidates import refuse_others
    from kernelproof.types import Status
    from kernelproof.verifier.engine.engine import require_device

    candidates = [read_one(file, problem, suite) for file in (old, new)]
    settings = options.settings_for(candidates)
    if not settings.measure:
        raise UsageError("compare times both: leave out --no-measure")
    refuse_others(candidates, settings.backend)
    require_device(settings.backend)
    place = storage.create_workspace().database if store else None
    names, verdicts, console = _names(old, new), [], screen()
    with closing(judge_each(candidates, settings, place, run, spinner=not as_json)) as judged:
        for name, done in zip(names, judged, strict=True):
            verdicts.append(done)
            if not as_json:
                _print(name, done, console)
    gain, slower = _gains(*verdicts)
    if as_json:
        print(json_line(_as_json(names, verdicts, gain, slower)))
    if any(done.status is not Status.CORRECT for done in verdicts):
        raise typer.Exit(1)
    if gain is None:
        raise KernelproofError("both are correct, but were not timed, so nothing is compared")
    if not as_json:
        console.print(_words(names, gain, slower))
    if slower and fail_if_slower:
        raise typer.Exit(1)


def _names(old: Path, new: Path) -> tuple[str, str]:
    """How the two are called: by their last parts where these differ."""
    if old.name != new.name:
        return clean(old.name), clean(new.name)
    return clean(str(old)), clean(str(new))


def _print(name: str, done: Verdict, console: Console) -> None:
    from kernelproof.report.verification import print_headline

    v = done.verification
    print_headline(done.status, v, done.extraction.reason, done.attempt_id, console, name)


def _words(names: tuple[str, str], gain: Gain, slower: bool) -> str:
    """The closing line: how many times as fast the new one is."""
    from kernelproof.report.findings import gain_words

    words = gain_words(gain.ratio, gain.interval, gain.noise, shown=gain.shown or slower, other=names[0])
    return f"{names[1]}: {words}{', surely slower' if slower else ''}"


def _gains(old: Verdict, new: Verdict) -> tuple[Gain | None, bool]:
    from kernelproof.runs.tuning import gain

    loss = gain(new.measurement, old.measurement)
    return gain(old.measurement, new.measurement), loss is not None and loss.shown


def _as_json(
    names: tuple[str, str], verdicts: list[Verdict], gain: Gain | None, slower: bool
) -> dict[str, object]:
    return {
        "candidates": [
            {"file": name, "attempt": done.attempt_id, "status": done.status}
            for name, done in zip(names, verdicts, strict=True)
        ],
        "ratio": gain.ratio if gain else None,
        "interval": [gain.interval.low, gain.interval.high] if gain else None,
        "faster": gain.shown if gain else None,
        "slower": slower if gain else None,
    }
