"""`kernelproof tune`: a correct kernel made faster without a model: its numeric parameters are searched."""

from __future__ import annotations

import sys
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from kernelproof.choices import CALL_S, MEASURE_S, SEED, TIME_S, TUNED, Rigor
from kernelproof.cli.completion import attempts, problems
from kernelproof.cli.declaring import Argument, Option
from kernelproof.cli.options import (
    AUTO,
    INTERRUPTED,
    BackendOption,
    JsonOption,
    NumericsOption,
    PurityOption,
    RunOption,
    SizeOption,
    StorageOptions,
    SuiteOption,
    UnsafeOption,
    VerifyOptions,
    explicit_options,
    settings_over,
)
from kernelproof.cli.verify import read_one
from kernelproof.errors import KernelproofError, MachineError, UsageError
from kernelproof.report.plain import json_line, screen
from kernelproof.wording import counted

if TYPE_CHECKING:
    from kernelproof.cli.display import Display
    from kernelproof.db.store import Store
    from kernelproof.runs.tuning import Proposer, Trial, Tuned, TuningTask
    from kernelproof.types import Problem, VerifySettings


@dataclass(frozen=True)
class TuneOptions:
    backend: BackendOption = AUTO
    size: SizeOption = ""
    rigor: Annotated[Rigor, Option("How narrowly the best and the original are measured at the end.")] = (
        Rigor.STANDARD
    )
    numerics: NumericsOption = "fp32"
    purity: PurityOption = "any"
    seconds: Annotated[
        float | None, Option("Most seconds for timed blocks [default: 2, at the end the rigor's].", MEASURE_S)
    ] = None
    unsafe: UnsafeOption = False


@dataclass(frozen=True)
class SearchOptions:
    """The options that say which combinations are tried, and for how long."""

    trials: Annotated[int, Option("Most combinations that are tried.", TUNED)] = 30
    seconds_budget: Annotated[
        float | None, Option("Seconds after which no further combination is tried.", TIME_S)
    ] = None
    seed: Annotated[int, Option("Of the random choices.", SEED)] = 0
    call_seconds: Annotated[
        float, Option("Most seconds for one call: a combination that hangs takes so long.", CALL_S)
    ] = 10.0


@dataclass(frozen=True)
class KernelOptions:
    """The kernel that is tuned: a file and its problem, or a stored attempt."""

    file: Annotated[Path | None, Argument("A correct candidate's source, or a response.")] = None
    problem: Annotated[str | None, Option("The problem's id, name, or file.", offered=problems)] = None
    attempt: Annotated[
        str | None, Option("Instead of FILE: a stored attempt (17), or: last.", offered=attempts)
    ] = None


def tune(
    *,
    context: typer.Context,
    kernel: KernelOptions,
    bounds: SearchOptions,
    options: TuneOptions,
    output: Annotated[
        Path | None, Option("File to write the best source to.", names=("--output", "-o"))
    ] = None,
    suite: SuiteOption = None,
    storage: StorageOptions,
    run: RunOption = None,
    as_json: JsonOption = False,
) -> None:
    """Make a correct kernel faster by searching its numeric parameters. Asks no model."""
    from kernelproof.db.store import open_store

    overrides = explicit_options(options, context)
    with ExitStack() as stack:
        if kernel.attempt is not None:
            store = stack.enter_context(open_store(storage.database, create=False))
            task = _stored(store, kernel, overrides, bounds.call_seconds, run)
        else:
            task = _from_file(kernel, suite, overrides, bounds.call_seconds, run)
            store = stack.enter_context(open_store(storage.create_workspace().database))
        _refuse(task, output)
        done = _search(task, store, bounds, as_json)
    _conclude(done, output, as_json, storage.option)


def _search(task: TuningTask, store: Store, bounds: SearchOptions, as_json: bool) -> Tuned:
    import anyio

    from kernelproof.cli.display import Display
    from kernelproof.runs.tuning import proposer_for
    from kernelproof.runs.tuning import tune as search
    from kernelproof.verifier.engine.engine import Engine

    trials = bounds.trials
    proposer = proposer_for(task.template, trials, bounds.seed)
    if not as_json:
        _introduce(task, proposer)
    total = min(trials, task.template.allowed or trials)
    with (
        Engine(unsafe=task.trial.unsafe, many=True) as engine,
        Display("trials", total, as_json=as_json) as display,
    ):
        work = partial(search, task, proposer, engine, store, trials=trials, seconds=bounds.seconds_budget)
        work = partial(work, config={"seed": bounds.seed, "chosen by": proposer.name})
        heard = {"on_trial": partial(_say, display, task), "unread": lambda: display.unread}
        return anyio.run(partial(work, on_wait=_wait, **heard))


def _from_file(
    kernel: KernelOptions, suite: Path | None, overrides: dict[str, Any], call_seconds: float, run: str | None
) -> TuningTask:
    if kernel.file is None:
        raise UsageError("what is to be tuned? give a file and --problem, or --attempt")
    found = read_one(kernel.file, kernel.problem, suite)
    if found.extraction.candidate is None:
        raise UsageError(f"{kernel.file} holds no program that defines ModelNew")
    settings = VerifyOptions(**overrides).settings([found.problem])
    return _plan(found.extraction.candidate.source, found.problem, settings, call_seconds, run, None)


def _stored(
    store: Store, kernel: KernelOptions, overrides: dict[str, Any], call_seconds: float, run: str | None
) -> TuningTask:
    if kernel.file is not None or kernel.problem is not None:
        raise UsageError("--attempt brings its own program and problem; leave out FILE and --problem")
    assert kernel.attempt is not None
    stored = store.load_attempt(store.resolve_attempt(kernel.attempt))
    if stored.source is None:
        raise UsageError(f"attempt {stored.id} holds no program; give one that ended as correct")
    before = stored.verdict.verification.settings if stored.verdict else stored.run.verify
    settings = settings_over(before, overrides, [stored.problem])
    usual = {"rigor": overrides.get("rigor", Rigor.STANDARD), "measure_seconds": overrides.get("seconds")}
    more = {"measure": True, "baselines": (), "target_half_width": None}
    settings = settings.model_copy(update={**usual, **more})
    return _plan(stored.source, stored.problem, settings, call_seconds, run, stored.id)


def _plan(
    source: str,
    problem: Problem,
    settings: VerifySettings,
    call_seconds: float,
    run: str | None,
    parent: int | None,
) -> TuningTask:
    from kernelproof.runs.tuning import TuningTask
    from kernelproof.runs.tuning_template import read_template

    confirm = settings.model_copy(update={"call_seconds": call_seconds})
    trial = confirm.model_copy(update={"rigor": Rigor.QUICK})
    return TuningTask(read_template(source), problem, trial, confirm, run, parent)


def _refuse(task: TuningTask, output: Path | None) -> None:
    """Raises what is known before anything runs."""
    from kernelproof.verifier.devices.discovery import interprets
    from kernelproof.verifier.engine.engine import require_device

    require_device(task.trial.backend)
    if interprets(task.trial.backend):
        raise MachineError(f"a tuning compares times, and without a GPU {task.trial.backend} is not timed")
    if output is not None and not output.absolute().parent.is_dir():
        raise UsageError(f"{output} cannot be written: there is no directory {output.parent}")


def _introduce(task: TuningTask, proposer: Proposer) -> None:
    from kernelproof.report.layout import print_table

    template, console = task.template, screen()
    how = "declared" if template.declared else "found (the source declares none)"
    console.print(f"{task.problem.id}: {counted(len(template.parameters), 'parameter')} {how}")
    rows = [(p.name, str(p.line), str(p.value), ", ".join(map(str, p.values))) for p in template.parameters]
    print_table(console, ("parameter", "line", "in the source", "values"), rows)
    for limit in template.limits:
        console.print(f"where {limit.text}", markup=False)
    count = counted(template.allowed or template.size, "combination")
    console.print(f"{count}; chosen by: {proposer.name}")


def _wait() -> None:
    print("another command tunes the same: waiting until it is done", file=sys.stderr)


def _say(display: Display, task: TuningTask, trial: Trial) -> None:
    from kernelproof.report.findings import finding_of

    named = task.template.named(trial.values)
    said = ", ".join(f"{name} {value}" for name, value in named.items())
    m = trial.measurement
    how = f"  {finding_of(m)}" if m is not None and trial.correct else ""
    status = f"{trial.status.value}{how}" if display.lines else trial.status.value
    display.ended(said, status, json_line(_facts(task, trial)))


def _facts(task: TuningTask, trial: Trial) -> dict[str, Any]:
    m = trial.measurement if trial.correct else None
    return {
        "attempt": trial.attempt_id,
        "parameters": task.template.named(trial.values),
        "status": trial.status.value,
        "speedup": m.speedup if m else None,
        "interval": [m.speedup_interval.low, m.speedup_interval.high] if m else None,
        "kept": trial.kept,
    }


def _conclude(done: Tuned, output: Path | None, as_json: bool, where: str) -> None:
    """Prints what was found, writes the best source, and exits with 1 where nothing is correct."""
    if as_json:
        print(json_line(_whole(done)))
    elif done.ranked:
        _print(done, where)
    if done.stopped:
        if not as_json:
            screen().print("stopped: run the same command again to continue")
        raise typer.Exit(INTERRUPTED)
    first = done.trials[0]
    if not first.correct:
        raise KernelproofError(
            f"the source as it is ended as {first.status}: {first.reason}; a tuning starts from a correct "
            f"kernel (kernelproof show {first.attempt_id})"
        )
    if output is not None and done.chosen is not None:
        try:
            output.write_text(done.task.template.filled(done.chosen), encoding="utf-8")
        except OSError as error:
            raise UsageError(f"{output} cannot be written: {error.strerror}") from None


def _print(done: Tuned, where: str) -> None:
    """The trials, both confirmations, the verdict, and what to do with it."""
    from kernelproof.report.verification import MOST_TRIALS, Timed, print_next, print_timed

    def row(name: str, trial: Trial | None) -> list[Timed]:
        if trial is None or trial.measurement is None or not trial.correct:
            return []
        values = map(str, template.named(trial.values).values())
        return [Timed([name, *values], trial.measurement, trial.attempt_id)]

    console, template = screen(), done.task.template
    kept = sum(trial.kept for trial in done.trials)
    taken = f", {kept} of them kept from before" if kept else ""
    console.print(f"{counted(len(done.trials), 'trial')}{taken}; the best at rigor {done.task.trial.rigor}:")
    rows = row("original", done.trials[0] if done.trials else None)
    others = [trial for trial in done.ranked if trial.values != template.original]
    for place, trial in enumerate(others[:MOST_TRIALS], start=1):
        rows += row(str(place), trial)
    titles = ["", *template.named(template.original)]
    print_timed(titles, rows, console)
    if done.original is not None:
        console.print(f"verified again on fresh inputs, at rigor {done.task.confirm.rigor}:")
        print_timed(titles, [*row("original", done.original), *row("best", done.best)], console)
        console.print(_closing_line(done), markup=False, soft_wrap=not console.is_terminal)
        print_next(_next(done, where), console)


def _closing_line(done: Tuned) -> str:
    """The closing line: the gain, or why the original is kept."""
    from kernelproof.report.findings import SEPARATOR, gain_words

    if done.chosen is None:
        assert done.original is not None
        return f"nothing is claimed: verified again, the original ended as {done.original.status}"
    gain, values = done.gain, done.task.template.named(done.chosen)
    if gain is None:
        return "the original is kept: no trial was faster"
    said = gain_words(gain.ratio, gain.interval, gain.noise, shown=gain.shown)
    if not gain.shown:
        return f"the original is kept: {said}"
    return SEPARATOR.join((said, ", ".join(f"{name} {value}" for name, value in values.items())))


def _next(done: Tuned, where: str) -> dict[str, str]:
    """What to do with it: look, take the source, or measure better."""
    assert done.original is not None
    if done.chosen is None:
        return {f"kernelproof show {done.original.attempt_id}{where}": "what went wrong"}
    if done.gain is not None and not done.gain.shown and done.gain.ratio > 1:
        return {"the same command with --rigor publish": "measure both longer, best on a quiet machine"}
    if done.best is None or done.gain is None or not done.gain.shown:
        return {}
    show = f"kernelproof show {done.best.attempt_id}{where}"
    return {show: "the best one, beside PyTorch", f"{show} --source": "its source, as --output writes it"}


def _whole(done: Tuned) -> dict[str, Any]:
    gain, template = done.gain, done.task.template
    return {
        "trials": len(done.trials),
        "original": _facts(done.task, done.original) if done.original else None,
        "best": _facts(done.task, done.best) if done.best else None,
        "gain": gain.ratio if gain else None,
        "interval": [gain.interval.low, gain.interval.high] if gain else None,
        "shown": gain.shown if gain else False,
        "chosen": template.named(done.chosen) if done.chosen else None,
        "stopped": done.stopped,
    }
