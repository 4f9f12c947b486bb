"""Two models, runs, templates or strategies side by side, on screen."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from operator import attrgetter

from rich.console import Console
from rich.text import Text

from kernelproof.db.scores.comparing import ComparedProblem, Comparison, Side
from kernelproof.report.layout import attempt_number, between, share
from kernelproof.report.plain import clean
from kernelproof.report.tables import Column, fitting, setting_line
from kernelproof.wording import counted

_STYLES = {"a": "green", "b": "red"}
_WORDS = {"a": "A", "b": "B", "tie": "tie", "neither": "-"}


def print_comparisons(comparisons: Sequence[Comparison], console: Console) -> None:
    """For each setting the problems with who wins where, then the tests in words."""
    if not comparisons:
        console.print("No problem was judged for both under one setting: there is nothing to compare.")
    for found in comparisons:
        source = "" if found.source == "model" else f"{found.source} · "
        console.print(Text(source + setting_line(found.setting), style="bold"))
        console.print(Text(f"A: {found.kind} {clean(found.a)}\nB: {found.kind} {clean(found.b)}"))
        console.print(fitting(_COLUMNS, found.problems, console))
        for line in _sentences(found):
            console.print(line, soft_wrap=True)


def _side(of: str) -> tuple[Column, Column, Column, Column]:
    """The columns of a side: correct samples, speedup, its interval, attempt."""
    get, name = attrgetter(of), of.upper()

    def timed(show: Callable[[Side], str], missing: str = "") -> Callable[[ComparedProblem], str]:
        return lambda p: missing if get(p).speedup is None or get(p).interval is None else show(get(p))

    return (
        Column(f"{name} correct", lambda p: f"{get(p).correct}/{get(p).judged}"),
        Column(f"{name} speedup", timed(lambda side: f"{side.speedup:.3f}", "-")),
        Column("95 % interval", timed(lambda side: between(side.interval)), spare=2),
        Column(f"{name} attempt", lambda p: attempt_number(get(p).attempt_id), spare=1),
    )


def _winner(title: str, of: str) -> Column:
    def cell(problem: ComparedProblem) -> Text:
        word = getattr(problem, of)
        return Text(_WORDS[word], style=_STYLES.get(word, ""))

    return Column(title, cell, number=False)


_A, _B = _side("a"), _side("b")
_COLUMNS = (
    Column("problem", lambda p: p.problem_id, number=False, name=True),
    *(_A[0], _B[0], _winner("more correct", "more_correct")),
    *(*_A[1:3], *_B[1:3], _winner("faster", "faster"), _A[3], _B[3]),
)


def _sentences(c: Comparison) -> list[str]:
    difference = c.correct_difference.interval
    within = f" (95 %: {100 * difference.low:+.1f} to {100 * difference.high:+.1f})" if difference else ""
    said = [
        f"Correct, on {counted(len(c.problems), 'problem')}: A {share(c.correct_a)}, "
        f"B {share(c.correct_b)}, difference {100 * (c.correct_a - c.correct_b):+.1f} points{within}. "
        f"A is right more often on {c.more_correct_a}, B on {c.more_correct_b}: p = {c.correct_p:.3g} "
        "(exact sign test).",
    ]
    if c.ratio.value is not None and c.ratio_p is not None:
        found = c.ratio.interval
        within = f" (95 %: {between(found)})" if found else ""
        said.append(
            f"Speed, on {counted(c.ratio.count, 'problem')} that both solved: A's best is "
            f"{c.ratio.value:.3f} times as fast as B's{within}, p = {c.ratio_p:.3g} "
            "(Wilcoxon's signed-rank test)."
        )
    ties = len(c.problems) - c.faster_a - c.faster_b
    said.append(f"Faster: A on {c.faster_a}, B on {c.faster_b}, neither on {ties}.")
    if c.only_a or c.only_b:
        said.append(f"Left out: {c.only_a} only A was judged on, {c.only_b} only B was.")
    return said
