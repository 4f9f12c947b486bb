"""`kernelproof runs`: how far runs are, their tags, and verdicts that are made again or no longer count."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated

from kernelproof.choices import ROW
from kernelproof.cli.audit import audit
from kernelproof.cli.commands import CommandLine
from kernelproof.cli.completion import runs
from kernelproof.cli.declaring import Argument, Option
from kernelproof.cli.options import AttemptArgument, JsonOption, StorageOptions
from kernelproof.cli.rejudge import rejudge
from kernelproof.errors import UsageError
from kernelproof.report.plain import json_line, say, screen
from kernelproof.wording import counted
from kernelproof.workspace import DatabasePlace

if TYPE_CHECKING:
    from kernelproof.db.store import Store
    from kernelproof.db.views import StoredBatch

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
    _print_json(looks) if as_json else _show(looks, run)


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


runs_app.command()(rejudge)
runs_app.command()(audit)


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


def _print_json(looks: Iterator[list[StoredBatch]]) -> None:
    for batches in looks:
        print(json_line({"batches": [batch.model_dump(mode="json") for batch in batches]}), flush=True)
