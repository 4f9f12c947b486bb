"""`kernelproof rejudge`: stored answers verified again, under other settings or by the current version."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from kernelproof.cli.completion import runs
from kernelproof.cli.options import (
    INTERRUPTED,
    JsonOption,
    VerifyOptions,
    WorkspaceOption,
    given_options,
    settings_over,
    takes_options,
)

if TYPE_CHECKING:
    from pathlib import Path

    from kernelproof.runs.rejudge import Rejudged


@takes_options
def rejudge(
    run: Annotated[
        str,
        typer.Argument(autocompletion=runs, help="The run's name or number, as kernelproof status has it."),
    ],
    *,
    context: typer.Context,
    options: VerifyOptions,
    workspace: WorkspaceOption = None,
    again: Annotated[
        bool, typer.Option("--again", help="Also what this version has judged so before.")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Verify a run's stored answers again, and ask nothing. What is not given stays as the run had it."""
    from kernelproof.workspace import open_workspace

    given = given_options(options, context)
    done = _run(run, given, open_workspace(workspace).database, again, as_json)
    _print_json(done) if as_json else _say(done)
    if done.missing:
        raise typer.Exit(INTERRUPTED)


def _run(run: str, given: dict[str, Any], database: Path, again: bool, as_json: bool) -> Rejudged:
    from functools import partial

    import anyio

    from kernelproof.cli.batch_display import BatchDisplay, Form
    from kernelproof.db.store import open_store
    from kernelproof.db.views import StoredAttempt
    from kernelproof.engine.engine import Engine
    from kernelproof.errors import UsageError
    from kernelproof.runs.rejudge import rejudge as judge
    from kernelproof.types import RunSettings, VerifySettings

    def settings(of: RunSettings, attempt: StoredAttempt) -> VerifySettings:
        return settings_over(of.verify, given, [attempt.problem])

    if "backend" in given:
        raise UsageError("a program is for the backend that it was asked for; leave out --backend")
    with (
        open_store(database, create=False) as store,
        Engine(unsafe=bool(given.get("unsafe")), many=True) as engine,
    ):
        runs = store.runs_named(run)
        for stored in runs.values():
            settings_over(stored.verify, given, [])  # what makes no sense is said before anything runs
        sizes = [(stored.model, len(store.attempts_of(number)), 1) for number, stored in runs.items()]
        form: Form = "json" if as_json else "live"
        with BatchDisplay(sizes, form, lambda: engine.busy_share) as display:
            told = {name: str(value) for name, value in given.items()}
            work = partial(judge, list(runs), settings, store, engine, again=again, config=told)
            heard = {"on_event": display.on_event, "progress": display.snapshot}
            return anyio.run(partial(work, **heard, unread=lambda: display.unread))


def _say(done: Rejudged) -> None:
    from kernelproof.cli.progress import print_counts
    from kernelproof.report.plain import screen
    from kernelproof.wording import counted

    console = screen()
    kept = f"; {done.kept} of them this version had judged so before" if done.kept else ""
    console.print(f"{counted(len(done.statuses), 'attempt')} judged{kept}", soft_wrap=True)
    print_counts(console, list(done.statuses.values()))
    if done.without_program:
        answers = counted(done.without_program, "answer")
        console.print(f"{answers} without a program: nothing to judge")
    for attempt, (before, now) in sorted(done.changed.items())[:20]:
        console.print(f"  attempt {attempt}: {before} before, {now} now", markup=False)
    if len(done.changed) > 20:
        console.print(f"  and {len(done.changed) - 20} more that ended otherwise than before")
    if done.missing:
        console.print(f"{done.missing} not judged: run the same command again to continue")


def _print_json(done: Rejudged) -> None:
    import json

    print(
        json.dumps(
            {
                "judged": {str(attempt): status.value for attempt, status in done.statuses.items()},
                "kept": done.kept,
                "without_program": done.without_program,
                "missing": done.missing,
                "changed": {
                    str(attempt): [before.value, now.value] for attempt, (before, now) in done.changed.items()
                },
            }
        )
    )
