"""`kernelproof verify`: one candidate from a file, with every check."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from pipeline.cli.common import (
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
)


def verify(
    file: Annotated[Path, typer.Argument(help="A candidate's source, or a raw response.")],
    problem: Annotated[str, typer.Option(help="The problem's id, name, or file.")],
    backend: BackendOption = BackendChoice.AUTO,
    size: SizeOption = "",
    suite: SuiteOption = None,
    workspace: WorkspaceOption = None,
    store: Annotated[bool, typer.Option(help="Keep it as an attempt in the workspace.")] = True,
    run: Annotated[str | None, typer.Option(help="A name for the run that keeps it.")] = None,
    seconds: SecondsOption = 10.0,
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
    """Verify one candidate. Exit code 0 when it is correct, 1 when it is not."""
    from contextlib import ExitStack

    from db.store import open_store
    from pipeline.cli.common import verify_settings
    from pipeline.execution.engine import Engine, require_device
    from pipeline.execution.files import read_text
    from pipeline.execution.single import verify_text
    from pipeline.nouns import Status
    from pipeline.problems import open_suite
    from pipeline.report.plain import screen
    from pipeline.report.verification import json_verified, print_verified
    from pipeline.workspace import open_workspace

    text = read_text(file)
    chosen = open_suite(suite).find(problem)
    settings = verify_settings(
        [chosen],
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
    require_device(settings.backend)
    with ExitStack() as stack:
        engine = stack.enter_context(Engine(unsafe=unsafe))
        kept = stack.enter_context(open_store(open_workspace(workspace).database)) if store else None
        console = screen()
        with console.status("starting") if not as_json and console.is_terminal else ExitStack() as status:
            done = verify_text(
                text,
                chosen,
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
    if done.status is not Status.CORRECT:
        raise typer.Exit(1)
