"""The facts of pages: scores, attempts, and sentences that say what the figures of a board are."""

from __future__ import annotations

from dataclasses import dataclass

from kernelproof.choices import RunKind
from kernelproof.db.scores.filters import Filters
from kernelproof.db.scores.groups import Curves
from kernelproof.db.scores.records import Mean, ProblemScores, Rate, Scores, Source
from kernelproof.db.store import Store
from kernelproof.db.views import StoredAttempt
from kernelproof.errors import UsageError
from kernelproof.report.layout import between, percents_between, ratio, share
from kernelproof.report.leaderboard import audit_of, nothing, place_of, places, remarks, title_of
from kernelproof.types import Pace, Roofline, Verification
from kernelproof.types.measurement import resolved
from kernelproof.wording import counted

_SOURCES: dict[RunKind, Source] = {"verify": "file", "tune": "tuner"}
"""The source of programs that no model wrote."""


@dataclass(frozen=True)
class AttemptPage:
    """One attempt with its evidence."""

    attempt: StoredAttempt
    verification: Verification | None
    """The one that is shown; None where nothing was verified."""
    parent: StoredAttempt | None
    """The attempt that it was built on."""

    @property
    def title(self) -> str:
        """The source of its program, and the setting under which it was judged."""
        setting = (self.verification or self.attempt.run.verify).setting
        return title_of((_SOURCES.get(self.attempt.run.kind, "model"), setting))


def attempt_page(store: Store, attempt_id: int, verification_id: int | None = None) -> AttemptPage:
    """The facts of an attempt. `verification_id`: which of its verifications is shown; None: the one that
    counts, else the newest.

    Raises UsageError when there is no such attempt, StoreError when its rows make no sense.
    """
    attempt = store.load_attempt(attempt_id)
    shown = attempt.verdict or (attempt.verifications[-1] if attempt.verifications else None)
    if verification_id is not None:
        shown = next(found for found in attempt.verifications if found.id == verification_id)
    return AttemptPage(
        attempt=attempt,
        verification=shown.verification if shown else None,
        parent=None if attempt.parent_id is None else store.load_attempt(attempt.parent_id),
    )


@dataclass(frozen=True)
class Board:
    """The results that may be compared: one source, one setting."""

    title: str
    models: list[Scores]
    problems: list[ProblemScores]
    curves: dict[str, Curves]
    """By model."""
    rooflines: dict[int, Roofline]
    """By verification: those of the problems' best kernels that have one."""
    audit: str = ""
    """When it was last audited, and how many of its best kernels held; empty where it never was."""


@dataclass(frozen=True)
class Report:
    """The leaderboard as a page shows it."""

    boards: list[Board]
    remarks: list[str]
    """A sentence for each reason why attempts are left out of the figures."""
    kernels: list[AttemptPage]
    """Those whose claim is highest come first."""
    left_out: int
    """Best kernels of problems that have no section."""


def gather(store: Store, filters: Filters, most_kernels: int) -> Report:
    """The report's facts. `most_kernels`: kernels with a section of their own.

    Raises UsageError when no finished attempt passes the filters.
    """
    board = store.scores.leaderboard(filters, ("model", "problem"))
    found = places(board)
    if not found:
        raise UsageError(nothing(board, "report"))
    curves = store.scores.curves(filters)
    ranked = sorted(
        (problem.best for problem in board.problems if problem.best is not None),
        key=lambda best: -resolved(best.interval.low, best.pace),
    )
    rooflines = store.scores.rooflines(
        [best.verification_id for best in ranked if best.roofline_fraction is not None]
    )
    return Report(
        boards=[
            Board(
                title=title_of(place),
                models=[scores for scores in board.models if place_of(scores) == place],
                problems=[problem for problem in board.problems if place_of(problem) == place],
                curves={each.model: each for each in curves if (each.source, each.setting) == place},
                rooflines=rooflines,
                audit=audit_of(board, place),
            )
            for place in found
        ],
        remarks=remarks(board),
        kernels=[
            attempt_page(store, best.attempt_id, best.verification_id) for best in ranked[:most_kernels]
        ],
        left_out=max(len(ranked) - most_kernels, 0),
    )


MOST_MODELS = 8
"""Models that have a sentence: the others stand in the table."""


def summary(board: Board) -> list[str]:
    """Sentences, the most important first."""
    said = [_models(board)]
    said += [_model(scores) for scores in board.models[:MOST_MODELS]]
    if len(board.models) > MOST_MODELS:
        said.append(f"The table has {counted(len(board.models) - MOST_MODELS, 'more model')}.")
    audit = [f"{board.audit[0].upper()}{board.audit[1:]}."] if board.audit else []
    return [*said, *_problems(board), *audit]


def _models(board: Board) -> str:
    asked = sum(scores.attempts for scores in board.models)
    said = [counted(len(board.problems), "problem"), counted(asked, "finished attempt")]
    if board.models[0].source == "model":  # else it is a file, or a tuner
        said.insert(0, counted(len(board.models), "model"))
    return f"{', '.join(said)}."


def _model(s: Scores) -> str:
    if not s.correct.whole:
        return f"{s.model}: none of {counted(s.samples, 'sample')} could be judged."
    faster = s.fast_p(1.0).rate
    judged = counted(s.correct.whole, "sample")
    first = f"{s.model} is correct in {s.correct.part} of {judged} ({rate(s.correct)})"
    if not s.correct.part:
        return f"{first}."
    if faster.share is None:
        return f"{first}; nothing was timed."
    over = s.geometric_mean_all
    kept = ""
    if over.value is not None and s.source == "model":
        kept = f" Its speedup over all {counted(s.problems, 'problem')} is {mean(over)}."
    return f"{first}, and faster than the reference in {faster.part}.{kept}"


def _problems(board: Board) -> list[str]:
    measured = [(p, p.best) for p in board.problems if p.best is not None]
    if not measured:
        return ["No correct kernel was timed."]
    paces = [best.pace for _, best in measured]
    counts = ", ".join(f"{paces.count(pace)} {pace}" for pace in Pace if pace in paces)
    said = [f"The best kernels of {counted(len(measured), 'problem')} against the reference: {counts}."]
    faster = [(p, best) for p, best in measured if best.pace is Pace.FASTER]
    if faster:
        problem, best = max(faster, key=lambda found: found[1].interval.low)
        said.append(
            f"The highest claim is on {problem.problem_id}: {best.speedup:.2f} times as fast "
            f"({between(best.interval, 2)}), by {best.model} (attempt #{best.attempt_id})."
        )
    return said


def rate(value: Rate) -> str:
    """`10.0 %, 95 % interval 6 to 17 %`."""
    interval = f", 95 % interval {percents_between(value.interval)} %" if value.interval else ""
    return share(value.share) + interval


def mean(value: Mean) -> str:
    """`1.240 (95 % interval 1.10 to 1.40)`."""
    interval = f" (95 % interval {between(value.interval, 2)})" if value.interval else ""
    return ratio(value.value) + interval
