"""`kernelproof compare`: two kernels of one problem, and one interval: how many times as fast the new one is.

Both are verified one after the other, each timed against the reference, and `runs.tuning.gain` puts the two
speedups together. The interval is wider than that of either.
"""

from __future__ import annotations

import json
from contextlib import ExitStack, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from kernelproof.cli.completion import problems
from kernelproof.cli.declaring import Argument, Option
from kernelproof.cli.options import JsonOption, RunOption, StorageOptions, SuiteOption, VerifyOptions
from kernelproof.cli.verify import judge_one, read_one
from kernelproof.errors import KernelproofError, UsageError
from kernelproof.report.plain import screen

if TYPE_CHECKING:
    from kernelproof.jobs import Verdict
    from kernelproof.runs.tuning import Gain
    from kernelproof.types import Measurement


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
    from kernelproof.db.store import open_store
    from kernelproof.report.findings import gain_words, headline
    from kernelproof.runs.candidates import refuse_others
    from kernelproof.types import Status
    from kernelproof.verifier.engine.engine import Engine, require_device

    candidates = [read_one(file, problem, suite) for file in (old, new)]
    settings = options.settings_for(candidates)
    if not settings.measure:
        raise UsageError("compare times both: leave out --no-measure")
    refuse_others(candidates, settings.backend)
    require_device(settings.backend)
    place = storage.create_workspace().database if store else None
    names, verdicts, console = _names(old, new), [], screen()
    with ExitStack() as stack:
        engine = stack.enter_context(Engine(unsafe=settings.unsafe))
        kept = stack.enter_context(open_store(place)) if place else None
        for name, candidate in zip(names, candidates, strict=True):
            with console.status(name) if console.is_terminal and not as_json else nullcontext() as status:
                say = (lambda stage, s=status, n=name: s.update(f"{n}: {stage}")) if status else None
                done = judge_one(engine, kept, candidate, settings, run, say)
            verdicts.append(done)
            if not as_json:
                reason = done.extraction.reason or ""
                said = headline(done.status, done.verification, reason, done.attempt_id)
                console.print(f"{name}: {said}", markup=False, highlight=False)
    gain, slower = _gains(*verdicts)
    if as_json:
        print(json.dumps(_as_json(names, verdicts, gain, slower)))
    if any(done.status is not Status.CORRECT for done in verdicts):
        raise typer.Exit(1)
    if gain is None:
        raise KernelproofError("both are correct, but were not timed, so nothing is compared")
    if not as_json:
        said = gain_words(gain.ratio, gain.interval, gain.noise, shown=gain.shown or slower, other=names[0])
        console.print(f"{names[1]}: {said}{', surely slower' if slower else ''}", markup=False)
    if slower and fail_if_slower:
        raise typer.Exit(1)


def _names(old: Path, new: Path) -> tuple[str, str]:
    """How the two are called: by their last parts where these differ."""
    return (old.name, new.name) if old.name != new.name else (str(old), str(new))


def _gains(old: Verdict, new: Verdict) -> tuple[Gain | None, bool]:
    """What the new one gains, and whether it surely loses."""
    from kernelproof.runs.tuning import gain

    before, after = _measured(old), _measured(new)
    loss = gain(after, before)
    return gain(before, after), loss is not None and loss.shown


def _measured(verdict: Verdict) -> Measurement | None:
    return verdict.verification.measurement if verdict.verification is not None else None


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
