"""What a batch came to: best kernels, what failed and why, tokens, cost, and where to look further."""

from __future__ import annotations

import shlex
from collections import Counter
from typing import TYPE_CHECKING, Any

from rich.console import Console

from kernelproof.cli.progress import print_counts
from kernelproof.report.plain import clean
from kernelproof.report.progress import cost, failure_line, fastest_table, progress_table, tokens
from kernelproof.types.run import BatchProgress
from kernelproof.wording import counted
from kernelproof.workspace import DatabasePlace

if TYPE_CHECKING:
    from kernelproof.runs.batch import Outcome


def print_summary(
    outcome: Outcome, database: DatabasePlace, name: str | None, progress: BatchProgress, console: Console
) -> None:
    """For people."""

    def say(text: str) -> None:
        console.print(text, soft_wrap=True)

    whole = progress.whole
    every = whole.kept == len(outcome.statuses)
    kept = f"; {'all' if every else whole.kept} of them had ended before" if whole.kept else ""
    say(f"{counted(len(outcome.statuses), 'attempt')} in {database}{kept}")
    print_counts(console, outcome.statuses.values())
    if len(progress.models) > 1:
        console.print(progress_table(progress, console))
    if progress.fastest:
        say("best kernels")
        console.print(fastest_table(progress.fastest))
    if progress.failures:
        say("what failed most, and the reason given most often")
        for failure in progress.failures:
            say(failure_line(failure))
    if whole.answered or whole.reused:
        asked = f"{counted(whole.answered, 'answer')} asked for"
        reused = f", {whole.reused} taken from before" if whole.reused else ""
        say(f"answers  {asked}{reused}")
    if whole.answered:
        say(f"tokens   {tokens(whole)}")
        say(f"cost     {cost(whole).removesuffix(' so far')}")
    if outcome.limit is not None:
        say(f"limit reached: {outcome.limit}")
    if outcome.refused_for_good:
        refused = counted(outcome.refused_for_good, "question")
        say(f"{refused} refused for good: see kernelproof show N; --again provider asks again")
    if outcome.to_retry:
        say(f"{outcome.to_retry} not finished: run the same command again to continue")
    for line in _further(progress, name):
        say(line)


def _further(progress: BatchProgress, name: str | None) -> list[str]:
    """Commands that show more."""
    numbers = [one.attempt_id for one in progress.fastest] + [one.attempt_id for one in progress.failures]
    number = next((number for number in numbers if number is not None), None)
    of_run = f" --run {shlex.quote(clean(name))}" if name else ""
    shown = [] if number is None else [f"kernelproof show {number}"]
    commands = [f"kernelproof leaderboard{of_run}", *shown]
    return [f"see more: {' · '.join(commands)}"] if progress.whole.ended else []


def summary_json(
    outcome: Outcome, database: DatabasePlace, name: str | None, progress: BatchProgress
) -> dict[str, Any]:
    """For machines: the last line of `--json`."""
    statuses = Counter("interrupted" if s is None else s.value for s in outcome.statuses.values())
    return {
        "event": "summary",
        "ended": outcome.ended,
        "run": name,
        "database": str(database),
        "attempts": len(outcome.statuses),
        "statuses": dict(statuses.most_common()),
        "to_retry": outcome.to_retry,
        "refused_for_good": outcome.refused_for_good,
        "limit": outcome.limit,
        "refusals": [str(refusal) for refusal in outcome.refusals],
        **progress.as_json(),
    }
