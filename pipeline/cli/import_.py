"""`kernelproof import`: programs that somebody published, with what is claimed of them, stored and judged."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from kernelproof.cli.declaring import Argument, Option
from kernelproof.cli.options import (
    INTERRUPTED,
    FollowLinksOption,
    JsonOption,
    RunOption,
    StorageOptions,
    SuiteOption,
    VerifyOptions,
)
from kernelproof.errors import UsageError
from kernelproof.report.plain import clean, json_line, screen
from kernelproof.wording import counted
from kernelproof.workspace import DatabasePlace

if TYPE_CHECKING:
    from kernelproof.runs.imports import ImportInput, StoredImport
    from kernelproof.types import RunSettings, Status


@dataclass(frozen=True)
class KnownOptions:
    """Facts about the programs that their files do not say."""

    model: Annotated[str | None, Option("Who wrote them [default: the folder's name].")] = None
    problem: Annotated[
        str | None, Option("The problem of all of them [default: what names or lines say].", parser=str)
    ] = None
    baseline_times: Annotated[
        Path | None, Option("KernelBench's times of the references, for claims of speedups.")
    ] = None


def import_(
    source: Annotated[
        Path, Argument("A run of KernelBench, a folder of programs, or a .jsonl file of answers.")
    ],
    *,
    known: KnownOptions,
    options: VerifyOptions,
    suite: SuiteOption = None,
    storage: StorageOptions,
    run: RunOption = None,
    verify: Annotated[bool, Option("Verify what is stored; without, store it only.")] = True,
    again: Annotated[bool, Option("Verify also those that this version has verified.")] = False,
    follow_links: FollowLinksOption = False,
    as_json: JsonOption = False,
) -> None:
    """Store programs that somebody published, with their claims, and verify them.

    The same command again goes on where it stopped.
    """
    from kernelproof.db.store import open_store
    from kernelproof.runs.candidates import refuse_others
    from kernelproof.runs.imports import import_run, statuses_of, store_import
    from kernelproof.verifier.engine.engine import require_device

    programs = _read(source, suite, known, follow_links)
    settings = options.settings_for(programs.candidates)
    refuse_others(programs.candidates, settings.backend)
    if verify:
        require_device(settings.backend)
    described = import_run(known.model or _label(source), run, settings)
    database = storage.create_workspace().database
    with open_store(database) as store:
        stored = store_import(store, programs, described)
        if not as_json:
            _say_stored(programs, stored, source, database)
    missing = _judge(stored, described, database, again, as_json) if verify else 0
    with open_store(database, only_read=True) as store:
        statuses = statuses_of(store, stored)
    _print_json(programs, stored, statuses) if as_json else _say_judged(statuses, described)
    if missing:
        raise typer.Exit(INTERRUPTED)


def _label(source: Path) -> str:
    name = source.resolve().name if source.is_dir() else source.stem
    if not name:
        raise UsageError("say who wrote them: --model NAME")
    return name


def _read(source: Path, suite: Path | None, known: KnownOptions, follow_links: bool) -> ImportInput:
    from kernelproof.problems import open_suite
    from kernelproof.runs.candidates import holds_many
    from kernelproof.runs.imports import read_import, read_times

    if not holds_many(source):
        if not source.exists():
            raise UsageError(f"{source} does not exist; give a folder or a .jsonl file")
        raise UsageError(f"{source} is one file: kernelproof verify takes it, and import takes a folder")
    opened = open_suite(suite)
    times = read_times(known.baseline_times) if known.baseline_times is not None else None
    of_all = opened.find(known.problem) if known.problem is not None else None
    return read_import(source, opened, of_all, times, follow_links=follow_links)


def _judge(
    stored: StoredImport, described: RunSettings, database: DatabasePlace, again: bool, as_json: bool
) -> int:
    """Verifies what is to be verified; returns how many an interruption left."""
    import anyio

    from kernelproof.cli.batch_display import BatchDisplay
    from kernelproof.db.store import open_store
    from kernelproof.runs.rejudge import rejudge
    from kernelproof.verifier.engine.engine import Engine

    sizes = [(described.model, len(stored.to_judge), 1)]
    with (
        open_store(database) as store,
        Engine(unsafe=described.verify.unsafe, many=True) as engine,
        BatchDisplay(sizes, "json" if as_json else "live") as display,
    ):
        work = partial(
            rejudge,
            [stored.run_id],
            lambda run, _: run.verify,
            store,
            engine,
            again=again,
            only=set(stored.to_judge),
            config={"import": described.model},
            **display.heard,
        )
        return anyio.run(work).missing


def _say_stored(programs: ImportInput, stored: StoredImport, source: Path, database: DatabasePlace) -> None:
    console = screen()
    before = len(stored.attempts) - stored.new
    were = f", {before} of them before" if before else ""
    console.print(
        f"{counted(len(stored.attempts), 'program')} from {clean(str(source))} stored in {database} as run "
        f"{stored.run_id}{were}; {stored.with_claim} with a claim",
        markup=False,
        soft_wrap=True,
    )
    for note in programs.notes:
        console.print(clean(note), markup=False, soft_wrap=True)


def _say_judged(statuses: dict[int, Status | None], described: RunSettings) -> None:
    from kernelproof.cli.display import print_counts

    console = screen()
    done = [status for status in statuses.values() if status is not None]
    print_counts(console, done)
    if left := len(statuses) - len(done):
        console.print(f"{counted(left, 'program')} not verified: run the same command again to continue")
    console.print(
        f"side by side: kernelproof leaderboard --claims --model {shlex.quote(clean(described.model))}",
        markup=False,
        soft_wrap=True,
    )


def _print_json(programs: ImportInput, stored: StoredImport, statuses: dict[int, Status | None]) -> None:
    facts = {
        "run": stored.run_id,
        "new": stored.new,
        "with_claim": stored.with_claim,
        "statuses": statuses,
        "notes": programs.notes,
    }
    print(json_line(facts))
