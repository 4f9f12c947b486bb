"""The charts of a page, drawn: each with the sentence below it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from markupsafe import Markup

from kernelproof.db.scores.records import Kernel, ProblemScores
from kernelproof.report.html import charts, kernel_charts
from kernelproof.report.html.attempts import AttemptPage
from kernelproof.report.html.axes import Spec
from kernelproof.report.html.drawing import Point, draw
from kernelproof.report.html.gathering import Board
from kernelproof.report.html.kernel_charts import Placed
from kernelproof.report.layout import percent, ratio
from kernelproof.wording import counted


@dataclass(frozen=True)
class Picture:
    """A chart, and what it shows."""

    drawn: Markup
    caption: str


@dataclass(frozen=True)
class Pictures:
    """The charts of a board. A part without anything to draw is empty."""

    speed: list[Picture]
    roofline: list[Picture]
    cost: list[Picture]


def board_pictures(board: Board, href: Callable[[int], str | None]) -> Pictures:
    """All charts of one board. `href`: attempt to where its page is, if anywhere."""
    models, curves = board.models, board.curves
    of = f"{counted(len(charts.charted(models)), 'model')}; the table of models has the figures"
    measured = any(found.speedups for found in curves.values())
    return Pictures(
        speed=_drawn(
            (
                charts.fast_p(models, curves) if measured else None,
                f"Curves of fast_p for {of}",
                "The part of the judged samples that is correct and faster than p (fast_p). A speedup of "
                "unresolved pace counts as 1 at most.",
            ),
            (
                charts.distribution(models, curves) if measured else None,
                f"Speedups of correct samples for {of}",
                "Speedups of the correct samples that were timed; those beyond 0.01 or 100 at the edge.",
            ),
        ),
        roofline=_roofline(board, href),
        cost=_drawn(
            (
                charts.tokens(models),
                f"Tokens for each correct sample against speedup, {of}",
                "Tokens of all attempts for each correct sample, against the geometric mean of the best "
                "speedups over all problems.",
            ),
            (
                charts.dollars(models),
                f"Dollars for each correct sample against speedup, {of}",
                "Dollars of all attempts for each correct sample, likewise.",
            ),
            (
                charts.over_turns(models, curves),
                f"Speedup after each number of turns, {of}",
                "The geometric mean of the best speedups over all problems, if each sample may have so many "
                "turns.",
            ),
            (
                charts.over_budgets(models, curves),
                f"Speedup over the tokens that each problem may cost, {of}",
                "The same mean, if the attempts on each problem may cost so many tokens. They are counted in "
                "the order in which they were begun.",
            ),
        ),
    )


def _roofline(board: Board, href: Callable[[int], str | None]) -> list[Picture]:
    places = {scores.model: series for series, scores in enumerate(charts.charted(board.models))}
    kernels = [
        Placed(
            places[best.model],
            best.candidate_ms,
            board.rooflines[best.verification_id],
            Point(_words(problem, best), href(best.attempt_id)),
        )
        for problem, best in ((problem, problem.best) for problem in board.problems)
        if best is not None and best.model in places and best.verification_id in board.rooflines
    ]
    points = [kernel.point for kernel in kernels]
    of = f"{counted(len(kernels), 'kernel')}; the table of problems has the fraction of the roofline"
    return _drawn(
        (
            kernel_charts.roofline(kernels, len(places)),
            f"Roofline plot of {of}",
            "What the best kernels reach, below what the device was seen to do (the line). Operations are "
            "those of products, convolutions and attention: a kernel without them stands in the other chart.",
        ),
        (
            kernel_charts.beside_roofline(kernels, len(places)),
            f"Time against the roofline's time of {of}",
            "The time of each best kernel, against the least time in which its data can be moved and its "
            "operations be done. On the line both are equal; ten times as high is a tenth of the roofline.",
        ),
        points=points,
    )


def _words(problem: ProblemScores, best: Kernel) -> str:
    """The meaning of a point of the roofline charts."""
    part = f", {percent(best.roofline_fraction)} of the roofline" if best.roofline_fraction else ""
    return (
        f"{problem.problem_id} {problem.problem}: {best.candidate_ms:.4g} ms{part}, speedup "
        f"{ratio(best.speedup)} ({best.pace}), by {best.model}, attempt #{best.attempt_id}"
    )


def rounds_picture(found: AttemptPage) -> Picture | None:
    """The times of both sides round by round; None where the record has none."""
    m = found.verification.measurement if found.verification else None
    if m is None or not any(m.candidate_samples_ms):
        return None
    said = (
        f"Times of {counted(len(m.candidate_samples_ms), 'round')}: candidate, {m.candidate_ms:.4g} ms "
        f"claimed; {m.baseline}, median {m.baseline_ms:.4g} ms"
    )
    fresh = " A pale upright line: fresh processes." if len(set(m.sessions)) > 1 else ""
    (picture,) = _drawn(
        (
            kernel_charts.rounds(m),
            said,
            "The median of each round's calls (lines), and single calls (dots; of many, some). A call that "
            f"took much longer stands at the upper edge.{fresh}",
        )
    )
    return picture


def _drawn(*wanted: tuple[Spec | None, str, str], points: Sequence[Point] = ()) -> list[Picture]:
    """A picture for each chart that there is: what is drawn, what a screen reader says, the caption.

    `points`: what its named points stand for.
    """
    return [Picture(draw(spec, said, points), caption) for spec, said, caption in wanted if spec is not None]
