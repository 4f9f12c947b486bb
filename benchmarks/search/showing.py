"""The tables of a comparison."""

from __future__ import annotations

import statistics
from collections.abc import Sequence

from benchmarks.evidence import table
from benchmarks.search.comparing import Record, Table, marks, mean


def shown(found: Table, against: str, budget: int) -> str:
    """All tables, one after another."""
    others = [name for name in found.strategies if name != against]
    parts = [
        "Gain: geometric mean of the winner's true speedup, 1 where nothing is faster than the reference",
        gains(found),
    ]
    if against in found.strategies and others:
        parts += [
            f"Gain over that of {against}, paired by seed, 95 % interval; + or -: the interval excludes 1",
            ratios(found, others, against),
        ]
    parts += [
        "Best so far: geometric mean of the gain over all landscapes, after so many questions",
        curves(found, budget),
        "Spent: means of one search",
        spent(found),
    ]
    return "\n".join(parts)


def gains(found: Table) -> str:
    """The gain of each strategy on each landscape, beside the largest there is."""
    rows: list[tuple[object, ...]] = []
    for name in found.landscapes:
        best = mean([each.best for each in found.of(name, found.strategies[0])])
        each = [f"{mean(_gains(found.of(name, strategy))):.3f}" for strategy in found.strategies]
        rows.append((name, f"{best:.2f}", *each))
    over_all = [f"{mean(_gains(found.all_of(strategy))):.3f}" for strategy in found.strategies]
    return table(("landscape", "best", *found.strategies), [*rows, ("all", "", *over_all)])


def ratios(found: Table, others: Sequence[str], against: str) -> str:
    """Each strategy against one of them, on each landscape and on all."""
    rows: list[tuple[object, ...]] = [
        (name, *(found.ratio(name, strategy, against) for strategy in others)) for name in found.landscapes
    ]
    rows.append(("all", *(found.overall(strategy, against) for strategy in others)))
    counts = []
    for strategy in others:
        verdicts = [found.ratio(name, strategy, against).verdict for name in found.landscapes]
        counts.append(f"{verdicts.count('better')} better, {verdicts.count('worse')} worse")
    return table(("landscape", *others), [*rows, ("", *counts)])


def curves(found: Table, budget: int) -> str:
    """How the gain grows with the questions."""
    rows = []
    for strategy in found.strategies:
        columns = zip(*(each.curve for each in found.all_of(strategy)), strict=True)
        rows.append((strategy, *(f"{mean(column):.3f}" for column in columns)))
    return table(("questions", *map(str, marks(budget))), rows)


def spent(found: Table) -> str:
    """Questions, tokens, and what came of them."""
    rows = []
    for strategy in found.strategies:
        records = found.all_of(strategy)
        questions = sum(each.questions for each in records)
        ends = sorted(each.ended for each in records if each.ended is not None)
        claims = [each.claimed / each.gain for each in records if each.claimed > 1]
        rows.append(
            (
                strategy,
                f"{questions / len(records):.1f}",
                f"{sum(each.tokens for each in records) / len(records) / 1000:.0f}",
                f"{sum(each.correct for each in records) / questions:.0%}",
                f"{sum(each.samples for each in records) / len(records):.1f}",
                f"{len(ends) / len(records):.0%}",
                statistics.median_low(ends) if ends else "",
                f"{mean(claims):.3f}" if claims else "",
            )
        )
    header = (
        "strategy",
        "questions",
        "k tokens",
        "correct",
        "samples",
        "ends itself",
        "after",
        "claim / true",
    )
    return table(header, rows)


def _gains(records: Sequence[Record]) -> list[float]:
    return [each.gain for each in records]
