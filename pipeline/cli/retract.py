"""`kernelproof retract`: a verification that no longer counts, or counts again."""

from __future__ import annotations

from typing import Annotated

from kernelproof.bounds import ROW
from kernelproof.cli.declaring import Option
from kernelproof.cli.options import AttemptArgument, StorageOptions
from kernelproof.errors import UsageError
from kernelproof.wording import counted


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
