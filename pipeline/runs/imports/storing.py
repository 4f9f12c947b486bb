"""What was read is stored as attempts, which `kernelproof.runs.rejudge` then judges like any others."""

from __future__ import annotations

from dataclasses import dataclass

from kernelproof.db.reported import Imported
from kernelproof.db.store import Store
from kernelproof.runs.imports.reading import Found
from kernelproof.types import RunSettings, Status, VerifySettings
from kernelproof.types.reported import ReportedResult


@dataclass(frozen=True)
class StoredImport:
    """Where the programs are."""

    run_id: int
    attempts: tuple[int, ...]
    """In the order in which they were read."""
    new: int
    """Attempts that were not there before."""
    with_claim: int
    to_judge: tuple[int, ...]
    """Attempts that hold a program."""


def store_import(store: Store, found: Found, settings: RunSettings) -> StoredImport:
    """Stores all, or nothing. Programs that the run has already stay as they are; a new claim is appended."""
    items = [
        Imported(one.problem, one.response, one.extraction, one.reported or ReportedResult(source=one.id))
        for one in found.given
    ]
    run_id, kept = store.add_imported(settings, items)
    return StoredImport(
        run_id=run_id,
        attempts=tuple(one.attempt_id for one in kept),
        new=sum(one.new for one in kept),
        with_claim=sum(item.reported.has_claim for item in items),
        to_judge=tuple(
            one.attempt_id for one, item in zip(kept, items, strict=True) if item.extraction.candidate
        ),
    )


def import_run(model: str, name: str | None, verify: VerifySettings) -> RunSettings:
    """The run that keeps what somebody's model wrote, judged with these settings."""
    return RunSettings(name=name, kind="import", model=model, verify=verify)


def statuses_of(store: Store, stored: StoredImport) -> dict[int, Status | None]:
    """How the attempts of an import have ended; None where they are still to be judged."""
    states = {state.id: state.status for state in store.attempts_of(stored.run_id).values()}
    return {number: states[number] for number in stored.attempts}
