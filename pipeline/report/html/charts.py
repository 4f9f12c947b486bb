"""The charts of models as Vega-Lite specifications. docs/guide/leaderboard.md defines the figures.

Each model is a number here, its place among the charted ones, and the page says which name that is: a text of
a server's or a candidate's never reaches the drawing program, which is native code.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Mapping, Sequence

from kernelproof.db.scores.curves import Curves
from kernelproof.db.scores.records import Mean, Scores
from kernelproof.report.html.axes import Spec, around, coloured, dashed, ends, log_axis, mean_axis, shaped
from kernelproof.report.html.axes import speedup_axis as speedup
from kernelproof.report.html.drawing import SERIES

Found = Mapping[str, Curves]
"""Model to its curves."""
MOST_SERIES = len(SERIES)
"""Models in one chart: those with most samples."""
_STEPS = 60
"""Values of p along a curve."""
_BINS = 10
"""Bars from one power of ten to the next."""


def charted(models: Sequence[Scores]) -> list[Scores]:
    """The models that have a series: those with most judged samples."""
    most = sorted(models, key=lambda s: -s.correct.whole)[:MOST_SERIES]
    return [scores for scores in models if scores in most]


def fast_p(models: Sequence[Scores], found: Found) -> Spec:
    """For each model the part of its judged samples that is correct and faster than p."""
    values = []
    low, high = _ends(models, found)
    for series, scores in enumerate(charted(models)):
        speedups = _speedups(scores, found)
        for step in range(_STEPS + 1):
            p = low * (high / low) ** (step / _STEPS)
            faster = len(speedups) - bisect_right(speedups, p)
            values.append({"series": series, "p": p, "share": faster / max(scores.correct.whole, 1)})
    return {
        "data": {"values": values},
        "mark": {"type": "line", "interpolate": "step-after"},
        "encoding": {
            "x": speedup("p", "p (speedup)", (low, high)),
            "y": {
                "field": "share",
                "type": "quantitative",
                "title": "samples faster than p",
                "scale": {"nice": 5},
                "axis": {"format": "%", "tickCount": 5},
            },
            **dashed(len(charted(models))),
        },
    }


def distribution(models: Sequence[Scores], found: Found) -> Spec:
    """A histogram: speedups of the measured correct samples."""
    low, high = _ends(models, found)
    counts: dict[tuple[int, int], int] = {}
    for series, scores in enumerate(charted(models)):
        for each in _speedups(scores, found):
            held = min(max(each, low), high * 0.999)
            # 1 is the edge of a bar: nothing slower shares it with something faster. A whole bar lies within.
            step = math.floor(_BINS * math.log10(held) + 1e-9)
            place = (series, max(step, math.ceil(_BINS * math.log10(low) - 1e-9)))
            counts[place] = counts.get(place, 0) + 1
    values = [
        {
            "series": series,
            "from": 10 ** (step / _BINS),
            "to": min(10 ** ((step + 1) / _BINS), high),
            "count": count,
        }
        for (series, step), count in counts.items()
    ]
    return {
        "data": {"values": values},
        "mark": {"type": "bar"},
        "encoding": {
            "x": speedup("from", "speedup", (low, high)),
            "x2": {"field": "to"},
            "y": {
                "field": "count",
                "type": "quantitative",
                "aggregate": "sum",
                "stack": "zero",
                "title": "correct samples",
                "axis": {"tickMinStep": 1, "tickCount": 5, "format": "d"},
            },
            **coloured(len(charted(models))),
        },
    }


def tokens(models: Sequence[Scores]) -> Spec | None:
    """Tokens for each correct sample against the speedup over all problems; None where nothing is known."""
    return _cost(models, [s.tokens_per_correct for s in charted(models)], "tokens for each correct sample")


def dollars(models: Sequence[Scores]) -> Spec | None:
    """The same by dollars."""
    return _cost(models, [s.cost_per_correct for s in charted(models)], "dollars for each correct sample")


def _cost(models: Sequence[Scores], costs: Sequence[Mean], title: str) -> Spec | None:
    values = [
        (series, cost.value, scores.geometric_mean_all.value)
        for series, (scores, cost) in enumerate(zip(charted(models), costs, strict=True))
        if cost.value and scores.geometric_mean_all.value
    ]
    if not values:
        return None
    domain = around(cost for _, cost, _ in values)
    return {
        "data": {"values": [{"series": s, "cost": cost, "speedup": mean} for s, cost, mean in values]},
        "mark": {"type": "point", "filled": True, "size": 90},
        "encoding": {
            "x": log_axis("cost", title, domain, "~g" if domain[1] < 1000 else "~s"),
            "y": mean_axis("speedup", "speedup over all problems", (mean for _, _, mean in values)),
            **shaped(len(charted(models))),
        },
    }


def over_turns(models: Sequence[Scores], found: Found) -> Spec | None:
    """The speedup over all problems after the first N turns; None where no sample has a second turn."""
    values = [
        {"series": series, "turns": allowed, "speedup": reached}
        for series, scores in enumerate(charted(models))
        for allowed, reached in (found[scores.model].turns if scores.model in found else ())
    ]
    if max((value["turns"] for value in values), default=0) < 2:
        return None
    return {
        "data": {"values": values},
        "mark": {"type": "line", "point": True},
        "encoding": {
            "x": {
                "field": "turns",
                "type": "ordinal",
                "title": "turns allowed",
                "axis": {"labelAngle": 0},
            },
            "y": mean_axis("speedup", "speedup over all problems", (value["speedup"] for value in values)),
            **dashed(len(charted(models))),
        },
    }


def over_budgets(models: Sequence[Scores], found: Found) -> Spec | None:
    """The speedup over all problems if each may cost so many tokens; None where that is one point at most."""
    values = [
        {"series": series, "tokens": budget, "speedup": reached}
        for series, scores in enumerate(charted(models))
        for budget, reached in (found[scores.model].budgets if scores.model in found else ())
    ]
    budgets = {value["tokens"] for value in values}
    if len(budgets) < 2:
        return None
    return {
        "data": {"values": values},
        "mark": {"type": "line", "interpolate": "step-after"},
        "encoding": {
            "x": log_axis("tokens", "tokens for each problem", around(budgets), "~s"),
            "y": mean_axis("speedup", "speedup over all problems", (value["speedup"] for value in values)),
            **dashed(len(charted(models))),
        },
    }


def _speedups(scores: Scores, found: Found) -> Sequence[float]:
    """Rising."""
    return found[scores.model].speedups if scores.model in found else ()


def _ends(models: Sequence[Scores], found: Found) -> tuple[float, float]:
    return ends(each for scores in charted(models) for each in _speedups(scores, found))
