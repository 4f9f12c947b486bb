"""`kernelproof verify`: one candidate from a file, with every check; or all of a folder or a JSONL file."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from pipeline.cli.common import (
    INTERRUPTED,
    BackendChoice,
    BackendOption,
    BaselineOption,
    JsonOption,
    MeasureOption,
    NumericsChoice,
    NumericsOption,
    OwnKernelOption,
    PurityChoice,
    PurityOption,
    RigorChoice,
    RigorOption,
    SecondsOption,
    SizeOption,
    SuiteOption,
    TrialsOption,
    UnsafeOption,
    WorkspaceOption,
    given_path,
    nonempty_text,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pipeline.cli.progress import Display
    from pipeline.runs.candidates import Given
    from pipeline.runs.many import Done, ManyDone
    from pipeline.types import Status, VerifySettings


def verify(
    file: Annotated[
        Path,
        typer.Argument(
            parser=given_path, help="A candidate's source or a raw response; a folder or .jsonl file of them."
        ),
    ],
    problem: Annotated[
        str | None,
        typer.Option(help="The problem's id, name, or file [default for many: what paths or lines say]."),
    ] = None,
    backend: BackendOption = BackendChoice.AUTO,
    size: SizeOption = "",
    suite: SuiteOption = None,
    workspace: WorkspaceOption = None,
    store: Annotated[bool, typer.Option(help="Keep it as an attempt in the workspace.")] = True,
    run: Annotated[
        str | None,
        typer.Option(parser=nonempty_text, help="A name for the run that keeps it."),
    ] = None,
    again: Annotated[
        bool, typer.Option("--again", help="Of many, verify those anew that the workspace keeps.")
    ] = False,
    seconds: SecondsOption = None,
    trials: TrialsOption = 3,
    measure: MeasureOption = True,
    rigor: RigorOption = RigorChoice.STANDARD,
    baseline: BaselineOption = None,
    numerics: NumericsOption = NumericsChoice.FP32,
    purity: PurityOption = PurityChoice.ANY,
    own_kernel: OwnKernelOption = True,
    as_json: JsonOption = False,
    unsafe: UnsafeOption = False,
) -> None:
    """Verify one candidate, or many. Exit code 0 when all are correct, 1 when one is not."""
    from pipeline.cli.common import verify_settings
    from pipeline.engine.engine import require_device
    from pipeline.runs.candidates import holds_many, refuse_others
    from pipeline.types import Status

    given = _given(file, problem, suite)
    settings = verify_settings(
        list({(one.problem.id, one.problem.sha256): one.problem for one in given}.values()),
        backend,
        size,
        seconds=seconds,
        trials=trials,
        measure=measure,
        rigor=rigor,
        numerics=numerics,
        purity=purity,
        baseline=baseline,
        own_kernel=own_kernel,
        unsafe=unsafe,
    )
    refuse_others(given, settings.backend)
    require_device(settings.backend)
    place = _database(workspace) if store else None
    if not holds_many(file):
        statuses = [_one(given[0], settings, place, run, as_json)]
    else:
        statuses = _many(given, settings, place, run, again, as_json)
    if any(status is not Status.CORRECT for status in statuses):
        raise typer.Exit(1)


def _given(file: Path, problem: str | None, suite: Path | None) -> list[Given]:
    from pipeline.errors import UsageError
    from pipeline.problems import open_suite
    from pipeline.runs.candidates import given_text, holds_many, read_candidates
    from pipeline.runs.files import read_text

    if holds_many(file):
        opened = open_suite(suite)
        return read_candidates(file, opened, opened.find(problem) if problem is not None else None)
    text = read_text(file)
    if problem is None:
        raise UsageError(f"which problem is {file} for? give --problem")
    return [given_text(str(file), text, open_suite(suite).find(problem))]


def _database(workspace: Path | None) -> Path:
    from pipeline.workspace import open_workspace

    return open_workspace(workspace).database


def _one(
    given: Given, settings: VerifySettings, database: Path | None, run: str | None, as_json: bool
) -> Status:
    from contextlib import ExitStack

    from db.store import open_store
    from pipeline.engine.engine import Engine
    from pipeline.report.plain import screen
    from pipeline.report.verification import json_verified, print_verified
    from pipeline.runs.single import verify_given

    with ExitStack() as stack:
        engine = stack.enter_context(Engine(unsafe=settings.unsafe))
        kept = stack.enter_context(open_store(database)) if database else None
        console = screen()
        with console.status("starting") if not as_json and console.is_terminal else ExitStack() as status:
            done = verify_given(
                given,
                settings,
                engine,
                store=kept,
                label=run,
                on_stage=lambda stage: status.update(stage) if hasattr(status, "update") else None,
            )
    if as_json:
        print(json_verified(done.extraction, done.status, done.verification, done.attempt_id))
    else:
        print_verified(done.extraction, done.status, done.verification, done.attempt_id, console)
    return done.status


def _many(
    given: Sequence[Given],
    settings: VerifySettings,
    database: Path | None,
    run: str | None,
    again: bool,
    as_json: bool,
) -> list[Status]:
    from contextlib import ExitStack
    from functools import partial

    import anyio

    from db.store import open_store
    from pipeline.cli.progress import Display
    from pipeline.engine.engine import Engine
    from pipeline.runs.many import verify_all

    with ExitStack() as stack:
        store = stack.enter_context(open_store(database)) if database else None
        engine = stack.enter_context(Engine(unsafe=settings.unsafe, many=True))
        display = None if as_json else stack.enter_context(Display("candidates", len(given)))
        work = partial(verify_all, given, settings, engine, store=store, label=run, again=again)
        outcome = anyio.run(partial(work, on_done=partial(_say, display)))
    if not as_json:
        _summary(outcome, database)
    if outcome.missing:
        raise typer.Exit(INTERRUPTED)
    return [done.verified.status for done in outcome.done]


def _say(display: Display | None, done: Done) -> None:
    from pipeline.report.verification import json_line

    given, v = done.given, done.verified
    if display is not None:
        display.advance()
        display.ended(given.id, v.status.value)
    else:
        facts = (v.extraction, v.status, v.verification, v.attempt_id)
        print(json_line(given.id, given.problem.id, done.kept, *facts), flush=True)


def _summary(outcome: ManyDone, database: Path | None) -> None:
    from pipeline.cli.progress import print_counts
    from pipeline.report.fastest import Timed, print_fastest
    from pipeline.report.plain import screen
    from pipeline.types import Status

    console = screen()
    kept = sum(done.kept for done in outcome.done)
    where = f" in {database}" if database else ""
    taken = f"; {kept} of them were kept before (--again verifies them anew)" if kept else ""
    console.print(f"{len(outcome.done)} candidates{where}{taken}", soft_wrap=True)
    print_counts(console, [done.verified.status for done in outcome.done])
    timed = [
        Timed(done.given.id, done.given.problem.id, v.verification.measurement, v.attempt_id)
        for done in outcome.done
        if (v := done.verified).status is Status.CORRECT and v.verification and v.verification.measurement
    ]
    print_fastest(timed, console)
    if outcome.missing:
        rest = "run the same command again to continue" if database else "--no-store keeps nothing of this"
        console.print(f"{outcome.missing} not verified: {rest}")
