"""`kernelproof status`: how far batches are, from another terminal; and how they ended."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated

from kernelproof.cli.completion import runs
from kernelproof.cli.declaring import Argument, Option
from kernelproof.cli.options import JsonOption, StorageOptions
from kernelproof.report.plain import json_line, screen
from kernelproof.workspace import DatabasePlace

if TYPE_CHECKING:
    from kernelproof.db.store import Store
    from kernelproof.db.views import StoredBatch

MOST = 20
"""Batches that are shown."""
LOOK_S = 2.0
"""Seconds between two looks of --watch: a batch stores its progress as often."""


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

    from kernelproof.report.batches import batches_screen

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
    """A line for each look."""
    for batches in looks:
        print(json_line({"batches": [batch.model_dump(mode="json") for batch in batches]}), flush=True)
