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
from kernelproof.types import Status, Verification
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
    """By attempt: its plan in words. A repair of an attempt has that attempt's plan."""
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
    correct = [attempt for attempt in sample if status_of(attempt, _verdict(attempt)) is Status.CORRECT]
    return max(correct, key=_rank, default=None)


def _rank(attempt: StoredAttempt) -> tuple[bool, float]:
    verdict = _verdict(attempt)
    if verdict is None:
        return True, 0.0
    times = verdict.measurement
    return not is_screening(verdict), times.claimed if times is not None else 0.0


def is_screening(verdict: Verification) -> bool:
    """Whether it was a search's quick look."""
    return verdict.settings.bar is not None


def _verdict(attempt: StoredAttempt) -> Verification | None:
    return attempt.verdict.verification if attempt.verdict else None


def status_of(attempt: StoredAttempt, verdict: Verification | None) -> Status | None:
    """The verdict's status, else the attempt's own. None while it is in progress, and when all of its
    verifications were retracted."""
    if verdict is not None:
        return verdict.status
    return None if attempt.verifications else attempt.status


def status_text(attempt: StoredAttempt, status: Status | None) -> Text:
    """The status in its colour; `retracted` or `in progress` for None."""
    said = "retracted" if attempt.verifications and status is None else str(status or "in progress")
    return Text(said, style=_STYLES.get(status, "red"))


def head(sample: Sequence[StoredAttempt], best: StoredAttempt | None) -> Text:
    """The sample in one line: problem, run, model, strategy, and the best."""
    first = sample[0]
    words = (
        f"{first.key.problem_id}, sample {first.key.sample} of run {first.run_id}: {first.run.model}, "
        f"strategy {first.run.strategy_name}, {counted(len(sample), 'attempt')}, "
        + (f"best #{best.id}" if best is not None else "none correct")
    )
    verdict = _verdict(best) if best is not None else None
    if verdict is not None and first.run.race:
        at = verdict.settings.rigor
        words += ", not verified again yet" if is_screening(verdict) else f", verified again at {at}"
    return Text(clean(words), style="bold")


def _line(attempt: StoredAttempt, is_best: bool, plan: str) -> Text:
    """`#17 turn 3  correct  1.432 (1.421 to 1.440, faster), 61.2 % of the roofline  best  plan 2 of ...`."""
    verdict = _verdict(attempt)
    status = status_of(attempt, verdict)
    line = Text(f"#{attempt.id} turn {attempt.key.turn}  ")
    line.append_text(status_text(attempt, status))
    if status is Status.PLANS and attempt.extraction is not None:
        line.append(f"  {clean(attempt.extraction.reason)}")
    if status is Status.CORRECT and verdict is not None and verdict.measurement is not None:
        times = verdict.measurement
        line.append(f"  {speedup_of(verdict)}")
        if times.roofline is not None:
            line.append(f", {percent(times.roofline.fraction)} of the roofline")
        if attempt.run.race and not is_screening(verdict):
            line.append(f"  at {verdict.settings.rigor}")
    if is_best:
        line.append("  best", style="bold green")
    if plan:
        line.append(f"  {clean(plan)}", style="dim")
    return line


_STYLES = {Status.CORRECT: "green", Status.PLANS: "", None: "dim"}
