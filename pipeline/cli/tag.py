"""`kernelproof tag`: words on runs, by which the leaderboard finds them together."""

from __future__ import annotations

from typing import Annotated

from kernelproof.cli.completion import runs
from kernelproof.cli.declaring import Argument, Option
from kernelproof.cli.options import StorageOptions
from kernelproof.errors import UsageError
from kernelproof.report.plain import say


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
