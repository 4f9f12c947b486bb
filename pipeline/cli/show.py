"""`kernelproof show`: everything stored about one attempt, or one text of it as it is stored."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeVar

from kernelproof.cli.declaring import Option
from kernelproof.cli.options import AttemptArgument, StorageOptions, only_one
from kernelproof.errors import UsageError
from kernelproof.report.plain import clean, json_text, say, screen

Shown = TypeVar("Shown")

if TYPE_CHECKING:
    from collections.abc import Callable

    from rich.console import Console

    from kernelproof.db.store import Store
    from kernelproof.db.views import StoredAttempt
    from kernelproof.report.show import Part


@dataclass(frozen=True)
class PartOptions:
    """The parts of an attempt that can be shown alone; at most one is given."""

    source: Annotated[bool, Option("Only the program, byte for byte.")] = False
    prompt: Annotated[bool, Option("Only the prompt, as it was sent.")] = False
    response: Annotated[bool, Option("Only the answer's text, as it came.")] = False
    log: Annotated[bool, Option("Only the build log.")] = False
    checks: Annotated[bool, Option("Only the checks with their evidence.")] = False
    tree: Annotated[bool, Option("The attempts of its sample: what was built on what.")] = False
    progress: Annotated[bool, Option("Its sample attempt by attempt: the best so far, and what it took.")] = (
        False
    )
    as_all: Annotated[
        bool, Option("Prompt, answer, source, build log, checks, environment too.", names=("--all",))
    ] = False
    as_json: Annotated[bool, Option("Everything, exactly as stored, as JSON.", names=("--json",))] = False
    html: Annotated[bool, Option("Write it all into one HTML file, with a chart of the times.")] = False


def show(
    attempt: AttemptArgument = "last",
    *,
    part: PartOptions,
    output: Annotated[
        Path | None,
        Option("The file that --html writes.", names=("--output", "-o"), show_default="attempt-ATTEMPT.html"),
    ] = None,
    storage: StorageOptions,
) -> None:
    """Show an attempt: the result, what it rests on, and what to look at next.

    On a terminal, long output is shown with $PAGER, else less.
    """
    from kernelproof.db.store import open_store

    chosen = only_one(part)
    if output is not None and chosen != "html":
        raise UsageError("--output is the file that --html writes; give --html as well")
    with open_store(storage.database, only_read=True) as store:
        number = store.resolve_attempt(attempt)
        if chosen == "html":
            say(write_page(store, number, output or Path(f"attempt-{number}.html")))
            return
        stored = store.load_attempt(number)
        sample = store.load_sample(stored.run_id, stored.key) if chosen in ("tree", "progress") else []
    _print_part(stored, sample, chosen, storage.option)


def _print_part(stored: StoredAttempt, sample: list[StoredAttempt], chosen: str | None, where: str) -> None:
    """One part of an attempt, all of it, or its result. `sample`: the attempts of a tree or a progress."""
    from kernelproof.report.sample import print_progress, print_tree
    from kernelproof.report.show import print_all, print_attempt, print_checks

    match chosen:
        case "tree":
            _print(sample, print_tree)
        case "progress":
            _print(sample, print_progress)
        case "json":
            print(json_text(stored))
        case "checks":
            _print(stored, print_checks)
        case "source" | "prompt" | "response" | "log":
            _print_text(stored, chosen)
        case "all":
            _print(stored, print_all)
        case _:
            _print(stored, partial(print_attempt, where=where))


def write_page(store: Store, number: int, output: Path) -> str:
    """Writes an attempt as one HTML file; what is said of it: its path and size."""
    from kernelproof.report.web.pages import attempt, write
    from kernelproof.runs.bundles.writer import bundle_bytes

    return f"{output}: {write(attempt(store, number, bundler=bundle_bytes), output) / 1000:,.0f} kB"


def _print(stored: Shown, printed: Callable[[Shown, Console], None]) -> None:
    from kernelproof.report.show import page

    console = screen()
    if not console.is_terminal:
        printed(stored, console)
        return
    with console.capture() as captured:
        printed(stored, console)
    page(captured.get())


def _print_text(stored: StoredAttempt, part: Part) -> None:
    """The very bytes for a file or a program; for eyes without what would steer the terminal."""
    from kernelproof.report.show import page, text_of

    text = text_of(stored, part)
    if sys.stdout.isatty():
        page(f"{clean(text)}\n")
    else:
        sys.stdout.flush()
        sys.stdout.buffer.write(text.encode("utf-8", "surrogatepass"))
