"""`kernelproof runs`: how far runs are, their tags, and verdicts that are made again or no longer count."""

from __future__ import annotations

import time
from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any

import typer

from kernelproof.choices import ROW, SEED
from kernelproof.cli.commands import CommandLine
from kernelproof.cli.completion import runs
from kernelproof.cli.declaring import Argument, Option
from kernelproof.cli.options import (
    INTERRUPTED,
    AllRankedOption,
    AttemptArgument,
    FilterOptions,
    JsonOption,
    StorageOptions,
    UnsafeOption,
    VerifyOptions,
    explicit_options,
    settings_over,
)
from kernelproof.errors import MachineError, UsageError
from kernelproof.report.plain import json_line, json_text, say, screen
from kernelproof.wording import counted
from kernelproof.workspace import DatabasePlace

if TYPE_CHECKING:
    from kernelproof.db.store import Store
    from kernelproof.db.views import StoredBatch
    from kernelproof.runs.rejudge import Rejudged
    from kernelproof.runs.reproduction import Leader, Outcome
    from kernelproof.types import Reproduction, RunSettings
    from kernelproof.verifier.engine.engine import Engine

runs_app = CommandLine(help="Follow stored runs: progress, tags, and verdicts made again or retracted.")

MOST = 20
LOOK_S = 2.0
"""Seconds between two looks of --watch: a batch stores its progress as often."""


@runs_app.command()
def status(
    run: Annotated[
        str | None,
        Argument("A run's name or number.", parser=str, offered=runs, show_default="the newest batches"),
    ] = None,
    watch: Annotated[bool, Option("Look every two seconds until the newest batch ends.")] = False,
    as_json: JsonOption = False,
    *,
    storage: StorageOptions,
) -> None:
    """Show how far generate, rejudge and tune are, while they run and after."""

    looks = _looks(storage.database, run, watch)
    if not as_json:
        _show(looks, run)
        return
    for batches in looks:
        print(json_line({"batches": batches}), flush=True)


@runs_app.command()
def tag(
    run: Annotated[str, Argument("The run's name or number.", parser=str, offered=runs)],
    words: Annotated[
        list[str] | None, Argument("Tags to put on it; without any, its tags are shown.", parser=str)
    ] = None,
    remove: Annotated[bool, Option("Take these tags off it.")] = False,
    *,
    storage: StorageOptions,
) -> None:
    """Put tags on a run, for leaderboard --tag; no verdict changes."""
    from kernelproof.db.store import open_store

    chosen = [word.strip() for word in words or ()]
    if not all(chosen):
        raise UsageError("a tag is empty; give a word, or leave it out")
    if remove and not chosen:
        raise UsageError("--remove needs the tags that are to go")
    with open_store(storage.database, create=False) as store:
        numbers = list(store.runs_named(run))
        if chosen:
            store.tags.remove(numbers, chosen) if remove else store.tags.add(numbers, chosen)
        for number, tags in store.tags.of(numbers).items():
            say(f"run {number}: {', '.join(tags) or 'no tags'}")


@runs_app.command()
def retract(
    attempt: AttemptArgument,
    reason: Annotated[str, Option("Why; it is stored.", metavar="<words>")],
    verification: Annotated[
        int | None, Option("One of its verifications, as show lists them [default: all].", ROW)
    ] = None,
    undo: Annotated[bool, Option("Take retractions back: it counts again.")] = False,
    *,
    storage: StorageOptions,
) -> None:
    """Say that an attempt's verifications no longer count. Nothing is deleted, and --undo takes it back."""
    from kernelproof.db.store import open_store

    with open_store(storage.database, create=False) as store:
        stored = store.load_attempt(store.resolve_attempt(attempt))
        ids = [one.id for one in stored.verifications]
        if verification is not None and verification not in ids:
            known = ", ".join(map(str, ids)) or "none"
            raise UsageError(f"attempt {stored.id} has no verification {verification}; it has: {known}")
        chosen = ids if verification is None else [verification]
        changed = sum(store.retract(number, reason, counts=undo) for number in chosen)
    done = ("counts again" if changed == 1 else "count again") if undo else "retracted"
    if changed:
        print(f"attempt {stored.id}: {counted(changed, 'verification')} {done}")
    else:
        state = "is retracted" if undo else "counts"
        print(f"attempt {stored.id}: nothing to do; it has no verification that {state}")


def _looks(database: DatabasePlace, run: str | None, watch: bool) -> Iterator[list[StoredBatch]]:
    """The newest batches; with `watch` again and again, until the newest has ended."""
    from kernelproof.db.store import open_store

    while True:
        with open_store(database, only_read=True) as store:
            batches = _batches(store, run)
        yield batches
        if not (watch and batches and batches[0].alive):
            return
        time.sleep(LOOK_S)


def _batches(store: Store, run: str | None) -> list[StoredBatch]:
    if run is not None:
        store.runs_named(run)  # raises where there is none
    return store.batches.newest(run, most=MOST)


def _show(looks: Iterator[list[StoredBatch]], run: str | None) -> None:
    """On a terminal each look takes the place of the one before."""
    from rich.console import Group
    from rich.live import Live
    from rich.text import Text

    from kernelproof.report.progress import batches_screen

    console = screen()
    batches = next(looks)
    if not batches:
        console.print(_nothing(run), soft_wrap=True)
        return
    shown = batches_screen(batches, console)
    if not console.is_terminal or not batches[0].alive:
        console.print(shown, soft_wrap=True)
        for batches in looks:
            console.print(Group(Text(), batches_screen(batches, console)), soft_wrap=True)
        return
    with Live(shown, console=console, auto_refresh=False) as live:
        for batches in looks:
            live.update(batches_screen(batches, console), refresh=True)


def _nothing(run: str | None) -> str:
    if run is None:
        return "no batch was started here yet; kernelproof generate starts one"
    return f"run {run} has no batches: verify made it, or an earlier version; kernelproof leaderboard has it"


@runs_app.command()
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
    done = _rejudged(run, overrides, storage.database, again, stale, sanitize, as_json)
    print(_rejudged_json(done)) if as_json else _say_rejudged(done, stale)
    if done.missing:
        raise typer.Exit(INTERRUPTED)


def _rejudged(
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
        runs, only = _to_rejudge(store, run, stale)
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


def _to_rejudge(store: Store, run: str | None, stale: bool) -> tuple[dict[int, RunSettings], set[int] | None]:
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


def _say_rejudged(done: Rejudged, stale: bool) -> None:
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


def _rejudged_json(done: Rejudged) -> str:
    facts = {name: getattr(done, name) for name in ("kept", "without_program", "missing", "changed")}
    return json_line({"judged": done.statuses, **facts})


@runs_app.command()
def audit(
    *,
    all_ranked: AllRankedOption = False,
    sample: Annotated[int | None, Option("So many of these, drawn at random.", ROW)] = None,
    seed: Annotated[
        int | None, Option("Draw the sample that an audit with this seed drew [default: by chance].", SEED)
    ] = None,
    options: FilterOptions,
    storage: StorageOptions,
    as_json: JsonOption = False,
    unsafe: UnsafeOption = False,
) -> None:
    """Verify the leaders of the leaderboard again: all of them, or a sample.

    The findings are kept, and the leaderboard shows them. Exit code 1 where a result does not hold, 3 where
    all others hold and one cannot be compared on this machine.
    """
    from kernelproof.db.store import open_store
    from kernelproof.runs import reproduction as auditing
    from kernelproof.verifier.engine.engine import Engine

    seed = _seed(all_ranked, sample, seed)
    with open_store(storage.database, create=False) as store, Engine(unsafe=unsafe) as engine:
        chosen, elsewhere = _leaders_here(auditing.leaders(store, options.filters()), engine, sample, seed)
        _say_begun(chosen, elsewhere, seed, as_json)
        on_done = (lambda *_: None) if as_json else _say_reproduced  # with --json all is printed at the end
        outcome = auditing.audit(store, chosen, engine, seed=seed, on_done=on_done)
    print(_audit_json(outcome, seed, len(elsewhere))) if as_json else _say_audited(outcome)
    if outcome.refuted:
        raise typer.Exit(1)
    if outcome.undecided:
        raise typer.Exit(3)


def _seed(all_ranked: bool, sample: int | None, seed: int | None) -> int | None:
    """The seed of a sample; None for an audit of all. Raises UsageError for options that do not fit."""
    import secrets

    if all_ranked is (sample is not None):
        raise UsageError("give --all-ranked, or --sample N to draw from what is ranked")
    if sample is None:
        if seed is not None:
            raise UsageError("--seed is for --sample; leave it out")
        return None
    return secrets.randbelow(int(SEED.most) + 1) if seed is None else seed


def _leaders_here(
    ranked: list[Leader], engine: Engine, sample: int | None, seed: int | None
) -> tuple[list[Leader], list[Leader]]:
    """The results that are audited, and those of devices that this machine has not.

    Raises MachineError where that is everything.
    """
    from kernelproof.runs.reproduction import by_place, drawn

    here, elsewhere = by_place(ranked, engine)
    if not here:
        devices = sorted({leader.setting.device or "no device" for leader in elsewhere})
        raise MachineError(
            f"what is ranked was measured on {', '.join(devices)}, and this machine has no such device; "
            "audit it there"
        )
    if sample is not None and seed is not None:
        here = drawn(here, sample, seed)
    return here, elsewhere


def _say_begun(chosen: list[Leader], elsewhere: list[Leader], seed: int | None, as_json: bool) -> None:
    by = "" if seed is None else f", drawn with --seed {seed}"
    say(f"auditing {counted(len(chosen), 'ranked result')}{by}", err=as_json)
    if elsewhere:
        left = counted(len(elsewhere), "result")
        say(f"{left} left out: measured on devices that this machine has not", err=as_json)


def _say_reproduced(leader: Leader, result: Reproduction) -> None:
    finding = result.finding.value.replace("_", " ")
    say(f"  {leader.problem_id} #{leader.best.attempt_id}: {finding}: {result.reason}")
    for alteration in result.alterations:
        say(f"    tampered: {alteration}")


def _say_audited(outcome: Outcome) -> None:
    more = [(outcome.refuted, "did not hold"), (outcome.undecided, "undecided")]
    rest = "".join(f", {number} {words}" for number, words in more if number)
    say(f"{outcome.held} of {counted(len(outcome.results), 'ranked result')} held{rest}")


def _audit_json(outcome: Outcome, seed: int | None, elsewhere: int) -> str:
    results = [
        {
            "problem_id": leader.problem_id,
            "source": leader.source,
            "setting": leader.setting,
            "ranked_verification_id": leader.best.verification_id,
            **result.model_dump(),
        }
        for leader, result in outcome.results
    ]
    counts = {name: getattr(outcome, name) for name in ("held", "refuted", "undecided")}
    return json_text({"seed": seed, **counts, "elsewhere": elsewhere, "results": results})
