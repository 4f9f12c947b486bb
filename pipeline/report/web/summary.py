"""The summary: plain sentences that say what the figures of a board are."""

from __future__ import annotations

from kernelproof.db.scores.records import Mean, Rate, Scores
from kernelproof.report.layout import between, percents_between, ratio, share
from kernelproof.report.web.facts import Board
from kernelproof.types import Pace
from kernelproof.wording import counted

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


def rate(found: Rate) -> str:
    """`10.0 %, 95 % interval 6 to 17 %`."""
    interval = f", 95 % interval {percents_between(found.interval)} %" if found.interval else ""
    return share(found.share) + interval


def mean(found: Mean) -> str:
    """`1.240 (95 % interval 1.10 to 1.40)`."""
    interval = f" (95 % interval {between(found.interval, 2)})" if found.interval else ""
    return ratio(found.value) + interval
