"""The attempts of one sample as a tree: what was built on what, how it ended, and which is the best."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console
from rich.text import Text
from rich.tree import Tree

from kernelproof.db.views import StoredAttempt
from kernelproof.extraction import read_plans
from kernelproof.report.layout import percent
from kernelproof.report.plain import clean
from kernelproof.report.progress import speedup_of
from kernelproof.types import Measurement, Status
from kernelproof.wording import counted


def print_tree(sample: Sequence[StoredAttempt], console: Console) -> None:
    """The whole tree. `sample`: all attempts of one sample, at least one."""
    ordered = sorted(sample, key=lambda attempt: attempt.key.turn)
    best = best_of(ordered)
    tree = Tree(head(ordered, best))
    known = {attempt.id for attempt in ordered}
    branches: dict[int | None, Tree] = {None: tree}
    plans = _plans(ordered)
    for attempt in ordered:  # a parent has an earlier turn
        parent = attempt.parent_id if attempt.parent_id in known else None
        line = _line(attempt, attempt is best, plans.get(attempt.id, ""))
        branches[attempt.id] = branches.get(parent, tree).add(line)
    console.print(tree)


def _plans(sample: Sequence[StoredAttempt]) -> dict[int, str]:
    """By attempt: the plan that it carries out, or that the attempt carried out which it goes on from."""
    answers = {attempt.id: attempt for attempt in sample if attempt.status is Status.PLANS}
    named: dict[int, str] = {}
    for attempt in sample:
        holder = answers.get(attempt.parent_id or 0)
        if attempt.plan is not None and holder is not None and holder.response is not None:
            plans = read_plans(holder.response)
            title = plans[attempt.plan - 1].title if attempt.plan <= len(plans) else ""
            named[attempt.id] = f"plan {attempt.plan} of turn {holder.key.turn}: {title}"
        elif attempt.parent_id in named and attempt.id not in answers:
            named[attempt.id] = named[attempt.parent_id]
    return named


def best_of(sample: Sequence[StoredAttempt]) -> StoredAttempt | None:
    """The correct attempt whose speedup's interval begins highest; of equal ones the first. One that was
    screened counts only where no other one is."""
    correct = [attempt for attempt in sample if _status(attempt) is Status.CORRECT]
    return max(correct, key=_rank, default=None)


def _rank(attempt: StoredAttempt) -> tuple[bool, float]:
    times = _times(attempt)
    return not _is_screened(attempt), times.claimed if times is not None else 0.0


def _is_screened(attempt: StoredAttempt) -> bool:
    """Whether what counts of it is a screening."""
    return attempt.verdict is not None and attempt.verdict.verification.settings.bar is not None


def _times(attempt: StoredAttempt) -> Measurement | None:
    return attempt.verdict.verification.measurement if attempt.verdict else None


def _status(attempt: StoredAttempt) -> Status | None:
    """None while it is in progress, and when all of its verifications were retracted."""
    if attempt.verdict is not None:
        return attempt.verdict.verification.status
    return None if attempt.verifications else attempt.status


def head(sample: Sequence[StoredAttempt], best: StoredAttempt | None) -> Text:
    """The sample in one line: problem, run, model, strategy, and the best."""
    first = sample[0]
    words = (
        f"{first.key.problem_id}, sample {first.key.sample} of run {first.run_id}: {first.run.model}, "
        f"strategy {first.run.strategy_name}, {counted(len(sample), 'attempt')}, "
        + (f"best #{best.id}" if best is not None else "none correct")
    )
    if best is not None and first.run.race:
        words += ", not verified again yet" if _is_screened(best) else f", verified again at {_rigor(best)}"
    return Text(clean(words), style="bold")


def _line(attempt: StoredAttempt, is_best: bool, plan: str) -> Text:
    """`#17 turn 3  correct  1.432 (1.421 to 1.440, faster), 61.2 % of the roofline  best  plan 2 of ...`."""
    status, times = _status(attempt), _times(attempt)
    said = "retracted" if attempt.verifications and status is None else str(status or "in progress")
    line = Text(f"#{attempt.id} turn {attempt.key.turn}  ")
    line.append(said, style=_STYLES.get(status, "red"))
    if status is Status.PLANS and attempt.extraction is not None:
        line.append(f"  {clean(attempt.extraction.reason)}")
    if status is Status.CORRECT and attempt.verdict is not None and times is not None:
        line.append(f"  {speedup_of(attempt.verdict.verification)}")
        if times.roofline is not None:
            line.append(f", {percent(times.roofline.fraction)} of the roofline")
        if attempt.run.race and not _is_screened(attempt):
            line.append(f"  at {_rigor(attempt)}")
    if is_best:
        line.append("  best", style="bold green")
    if plan:
        line.append(f"  {clean(plan)}", style="dim")
    return line


def _rigor(attempt: StoredAttempt) -> str:
    return str(attempt.verdict.verification.settings.rigor) if attempt.verdict else ""


_STYLES = {Status.CORRECT: "green", Status.PLANS: "", None: "dim"}
