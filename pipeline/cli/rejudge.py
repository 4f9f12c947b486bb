"""`kernelproof runs rejudge`: stored answers verified again, with other settings or by this version."""

from __future__ import annotations

import json
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any

import typer

from kernelproof.cli.completion import runs
from kernelproof.cli.declaring import Argument, Option
from kernelproof.cli.options import (
    INTERRUPTED,
    JsonOption,
    StorageOptions,
    VerifyOptions,
    explicit_options,
    settings_over,
)
from kernelproof.errors import UsageError
from kernelproof.report.plain import screen
from kernelproof.wording import counted
from kernelproof.workspace import DatabasePlace

if TYPE_CHECKING:
    from kernelproof.db.store import Store
    from kernelproof.runs.rejudge import Rejudged
    from kernelproof.types import RunSettings


def rejudge(
    run: Annotated[
        str | None,
        Argument(
            "The run's name or number, as kernelproof runs status has it [default with --stale: all].",
            parser=str,
            offered=runs,
        ),
    ] = None,
    *,
    context: typer.Context,
    options: VerifyOptions,
    storage: StorageOptions,
    again: Annotated[bool, Option("Also what this version has judged so before.")] = False,
    stale: Annotated[
        bool, Option("Only what was judged under another policy, as it was judged then.")
    ] = False,
    sanitize: Annotated[
        bool, Option("Only what is correct, and call it once more under sanitizers, if that is not done yet.")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Verify a run's stored answers again, and ask nothing. Other settings stay as the run had them."""
    overrides = explicit_options(options, context)
    if run is None and not stale:
        raise UsageError(
            "rejudge needs a run, as kernelproof runs status lists them; or --stale for all that is stale"
        )
    done = _run(run, overrides, storage.database, again, stale, sanitize, as_json)
    _print_json(done) if as_json else _say(done, stale)
    if done.missing:
        raise typer.Exit(INTERRUPTED)


def _run(
    run: str | None,
    overrides: dict[str, Any],
    database: DatabasePlace,
    again: bool,
    stale: bool,
    sanitize: bool,
    as_json: bool,
) -> Rejudged:
    import anyio

    from kernelproof.cli.batch_display import BatchDisplay, Form
    from kernelproof.db.store import open_store
    from kernelproof.db.views import StoredAttempt
    from kernelproof.runs.rejudge import Rejudged
    from kernelproof.runs.rejudge import rejudge as judge
    from kernelproof.types import VerifySettings
    from kernelproof.verifier.engine.engine import Engine
    from kernelproof.verifier.engine.sanitizers import sanitizers_for

    def settings(of: RunSettings, attempt: StoredAttempt) -> VerifySettings:
        then = attempt.verdict.verification.settings if stale and attempt.verdict else of.verify
        # A screening is verified as its run says: its bar was that of a search that is over.
        return settings_over(then if then.bar is None else of.verify, overrides, [attempt.problem])

    if "backend" in overrides:
        raise UsageError("a program is for the backend that it was asked for; leave out --backend")
    with (
        open_store(database, create=False) as store,
        Engine(unsafe=bool(overrides.get("unsafe")), many=True) as engine,
    ):
        runs, only = _chosen(store, run, stale)
        if sanitize:
            only = _correct(store, runs, only)
        for stored in runs.values():
            settings_over(stored.verify, overrides, [])  # what makes no sense is said before anything runs
            if sanitize:
                sanitizers_for(stored.verify.backend)
        if only == set():
            return Rejudged({}, 0, 0, 0, {})
        sizes = [
            (stored.model, sum(only is None or each.id in only for each in store.attempts_of(n).values()), 1)
            for n, stored in runs.items()
        ]
        form: Form = "json" if as_json else "live"
        with BatchDisplay(sizes, form, lambda: engine.busy_share) as display:
            chosen = {"stale": stale, "sanitize": sanitize}
            config = {name: str(value) for name, value in overrides.items()}
            config |= {name: str(value) for name, value in chosen.items() if value}
            work = partial(judge, list(runs), settings, store, engine, again=again, only=only, config=config)
            return anyio.run(partial(work, sanitize=sanitize, **display.heard))


def _chosen(store: Store, run: str | None, stale: bool) -> tuple[dict[int, RunSettings], set[int] | None]:
    """The runs, and the numbers of their attempts that are judged; None for all attempts."""
    if not stale:
        assert run is not None
        return store.runs_named(run), None
    found = store.scores.stale()
    named = (
        store.runs_named(run) if run else {n: s for k in found for n, s in store.runs_named(str(k)).items()}
    )
    runs = {number: settings for number, settings in named.items() if number in found}
    return runs, {attempt for number in runs for attempt in found[number]}


def _correct(store: Store, runs: dict[int, RunSettings], only: set[int] | None) -> set[int]:
    from kernelproof.types import Status

    states = (state for number in runs for state in store.attempts_of(number).values())
    return {s.id for s in states if s.status is Status.CORRECT and (only is None or s.id in only)}


def _say(done: Rejudged, stale: bool) -> None:
    from kernelproof.cli.display import print_counts

    console = screen()
    if stale and not done.statuses and not done.missing:
        console.print("nothing is stale: everything was judged under the current policy")
        return
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
