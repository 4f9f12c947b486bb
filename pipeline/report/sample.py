"""One sample on screen: the tree of its attempts, and attempt by attempt what each led to."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rich.console import Console
from rich.text import Text
from rich.tree import Tree

from kernelproof.db.views import StoredAttempt
from kernelproof.extraction import read_plans
from kernelproof.report.findings import finding_of, times
from kernelproof.report.layout import Column, fitting, folded, percent, print_table
from kernelproof.report.plain import clean
from kernelproof.types import Measurement, Status, Verification
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
    correct = [attempt for attempt in sample if status_of(attempt, _verification(attempt)) is Status.CORRECT]
    return max(correct, key=_rank, default=None)


def _rank(attempt: StoredAttempt) -> tuple[bool, float]:
    verdict = _verification(attempt)
    if verdict is None:
        return True, 0.0
    measured = verdict.measurement
    return not is_screening(verdict), measured.claimed if measured is not None else 0.0


def is_screening(verdict: Verification) -> bool:
    """Whether it was a search's quick look."""
    return verdict.settings.bar is not None


def _verification(attempt: StoredAttempt) -> Verification | None:
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
    verdict = _verification(best) if best is not None else None
    if verdict is not None and first.run.race:
        at = verdict.settings.rigor
        words += ", not verified again yet" if is_screening(verdict) else f", verified again at {at}"
    return Text(clean(words), style="bold")


def _line(attempt: StoredAttempt, is_best: bool, plan: str) -> Text:
    """`#17 turn 3  correct  1.43× [1.42, 1.44] faster, 61.2 % of the roofline  best  plan 2 of ...`."""
    verdict = _verification(attempt)
    status = status_of(attempt, verdict)
    line = Text(f"#{attempt.id} turn {attempt.key.turn}  ")
    line.append_text(status_text(attempt, status))
    if status is Status.PLANS and attempt.extraction is not None:
        line.append(f"  {clean(attempt.extraction.reason)}")
    if status is Status.CORRECT and verdict is not None and verdict.measurement is not None:
        measured = verdict.measurement
        line.append(f"  {finding_of(measured)}")
        if measured.roofline is not None:
            line.append(f", {percent(measured.roofline.fraction)} of the roofline")
        if attempt.run.race and not is_screening(verdict):
            line.append(f"  at {verdict.settings.rigor}")
    if is_best:
        line.append("  best", style="bold green")
    if plan:
        line.append(f"  {clean(plan)}", style="dim")
    return line


_STYLES = {Status.CORRECT: "green", Status.PLANS: "", None: "dim"}


FASTER = "make it faster"


@dataclass
class _Step:
    attempt: StoredAttempt
    parent: _Step | None
    best: float
    """Speedup of the best so far, 0 where nothing is correct."""
    is_best: bool
    tokens: int
    device_s: float

    @property
    def verdict(self) -> Verification | None:
        return _searched_by(self.attempt)

    @property
    def status(self) -> Status | None:
        """None while it is in progress, and where its verification was retracted."""
        return status_of(self.attempt, self.verdict)

    @property
    def times(self) -> Measurement | None:
        verdict = self.verdict
        return verdict.measurement if verdict is not None and verdict.status is Status.CORRECT else None

    @property
    def question(self) -> str:
        if self.attempt.status is Status.PLANS:
            return "plans"
        if self.attempt.plan is not None:
            return "carry out a plan"
        if self.parent is None:
            return "first question"
        return FASTER if self.parent.status is Status.CORRECT else f"repair {self.parent.status or 'it'}"

    @property
    def gain(self) -> str:
        if self.status is not Status.CORRECT or self.parent is None:
            return ""
        if self.parent.times is None or self.times is None:
            return "correct" if self.parent.status is not Status.CORRECT else ""
        return times(self.times.speedup / self.parent.times.speedup)

    @property
    def shown_best(self) -> Text:
        """The speedup of the best so far; green where it is this attempt's."""
        return Text(times(self.best) if self.best else "", style="bold green" if self.is_best else "")


def _searched_by(attempt: StoredAttempt) -> Verification | None:
    """The verification that the strategy went by: the screening, where the run races."""
    run = attempt.run
    stored = attempt.verdict_for(run.verify.as_screening(0.0)) if run.race else None
    stored = stored or attempt.verdict
    return stored.verification if stored is not None else None


def print_progress(sample: Sequence[StoredAttempt], console: Console) -> None:
    """The whole table. `sample`: all attempts of one sample, at least one."""
    ordered = sorted(sample, key=lambda attempt: attempt.key.turn)
    steps = _steps(ordered)
    console.print(head(ordered, best_of(ordered)))
    console.print(fitting(_COLUMNS, steps, console).table)
    _print_questions(steps, console)


def _steps(ordered: Sequence[StoredAttempt]) -> list[_Step]:
    known: dict[int, _Step] = {}
    best, claimed, tokens, device_s = 0.0, 0.0, 0, 0.0
    for attempt in ordered:
        tokens += _tokens(attempt)
        made = [stored for stored in attempt.verifications if stored.reused_from is None]
        device_s += sum(stored.verification.device_seconds for stored in made)
        step = _Step(attempt, known.get(attempt.parent_id or 0), best, False, tokens, device_s)
        if step.times is not None and step.times.claimed > claimed:
            claimed, best = step.times.claimed, step.times.speedup
            step.best, step.is_best = best, True
        known[attempt.id] = step
    return list(known.values())


def _tokens(attempt: StoredAttempt) -> int:
    """Of its question and answer, as far as the server said; an answer that was taken over costs nothing."""
    usages = [s.response.usage for s in attempt.responses if s.response is not None and not s.reused]
    return sum((u.prompt_tokens or 0) + (u.completion_tokens or 0) for u in usages if u is not None)


_COLUMNS = (
    Column("turn", lambda step: str(step.attempt.key.turn)),
    Column("attempt", lambda step: f"#{step.attempt.id}"),
    Column("question", lambda step: step.question, number=False, fit=folded),
    Column("of", lambda step: "" if step.parent is None else f"#{step.parent.attempt.id}", spare=3),
    Column("status", lambda step: status_text(step.attempt, step.status), number=False, fit=folded),
    Column("speedup", lambda step: "" if step.times is None else times(step.times.speedup)),
    Column("gain", lambda step: step.gain, spare=2),
    Column("best so far", lambda step: step.shown_best),
    Column("tokens", lambda step: f"{step.tokens:,}" if step.tokens else "", spare=4),
    Column("device s", lambda step: f"{step.device_s:.0f}", spare=1),
)


def _print_questions(steps: Sequence[_Step], console: Console) -> None:
    """By kind of question: how many came to something correct, and to a better best."""
    kinds: dict[str, list[_Step]] = {}
    for step in steps:
        kinds.setdefault(step.question, []).append(step)
    rows = [
        (
            kind,
            str(len(of_kind)),
            str(sum(step.status is Status.CORRECT for step in of_kind)),
            str(sum(step.is_best for step in of_kind)),
        )
        for kind, of_kind in kinds.items()
    ]
    print_table(console, ("question", "asked", "correct", "best so far"), rows)
    if steps[0].attempt.run.race:
        _print_confirmed(steps, console)


def _print_confirmed(steps: Sequence[_Step], console: Console) -> None:
    """The attempts that were verified again. The figures above are those of screenings."""
    verdicts = [(step.attempt.id, step.attempt.verdict) for step in steps]
    again = [(n, v.verification) for n, v in verdicts if v and not is_screening(v.verification)]
    for number, verdict in again:
        said = finding_of(verdict.measurement) if verdict.measurement else str(verdict.status)
        console.print(f"#{number} verified again at {verdict.settings.rigor}: {said}")
    if not again:
        console.print(f"not verified again yet; {counted(len(steps), 'attempt')} screened")
