"""Two models, runs, templates or strategies side by side, on screen."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console
from rich.text import Text

from kernelproof.db.scores.comparing import ComparedProblem, Comparison, Side
from kernelproof.report.layout import between, share
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
        rows = [_row(problem) for problem in found.problems]
        console.print(fitting(_COLUMNS, rows, console))
        for line in _sentences(found):
            console.print(line, soft_wrap=True)


_COLUMNS = (
    Column("problem", number=False, name=True),
    Column("A correct"),
    Column("B correct"),
    Column("more correct", number=False),
    Column("A speedup"),
    Column("95 % interval", spare=2),
    Column("B speedup"),
    Column("95 % interval", spare=2),
    Column("faster", number=False),
    Column("A attempt", spare=1),
    Column("B attempt", spare=1),
)


def _row(p: ComparedProblem) -> list[Text | str]:
    return [
        Text(clean(p.problem_id)),
        _correct(p.a),
        _correct(p.b),
        _winner(p.more_correct),
        *_speedup(p.a),
        *_speedup(p.b),
        _winner(p.faster),
        *("" if side.attempt_id is None else f"#{side.attempt_id}" for side in (p.a, p.b)),
    ]


def _correct(side: Side) -> str:
    return f"{side.correct}/{side.judged}"


def _speedup(side: Side) -> tuple[str, str]:
    if side.speedup is None or side.interval is None:
        return "-", ""
    return f"{side.speedup:.3f}", between(side.interval)


def _winner(word: str) -> Text:
    return Text(_WORDS[word], style=_STYLES.get(word, ""))


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
