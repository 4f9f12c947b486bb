"""The report's charts as Vega-Lite specifications. docs/guide/leaderboard.md defines the figures.

Each model is a number here, its place among the charted ones, and the page says which name that is: a text of
a server's or a candidate's never reaches the drawing program, which is native code.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Sequence
from typing import Any

from kernelproof.db.scores.records import Scores
from kernelproof.report.html.drawing import SERIES
from kernelproof.types import Measurement

Spec = dict[str, Any]
MOST_SERIES = len(SERIES)
"""Models in one chart: those with most samples."""
MOST_SAMPLES = 300
"""Dots of one side in a chart of samples."""
_STEPS = 60
"""Values of p along a curve."""
_TICKS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50, 100)
"""Of speedups: those beyond the first or the last stand at the edge of a chart."""
_BINS = 10
"""Bars from one power of ten to the next."""


def charted(models: Sequence[Scores]) -> list[Scores]:
    """The models that have a series: those with most judged samples."""
    most = sorted(models, key=lambda s: -s.correct.whole)[:MOST_SERIES]
    return [scores for scores in models if scores in most]


def fast_p(models: Sequence[Scores], speedups: dict[str, list[float]]) -> Spec:
    """For each model the part of its judged samples that is correct and faster than p."""
    values = []
    low, high = ends(speedups)
    for series, scores in enumerate(charted(models)):
        found = sorted(speedups.get(scores.model, []))
        for step in range(_STEPS + 1):
            p = low * (high / low) ** (step / _STEPS)
            faster = len(found) - bisect_right(found, p)
            values.append({"series": series, "p": p, "share": faster / max(scores.correct.whole, 1)})
    return {
        "data": {"values": values},
        "mark": {"type": "line", "interpolate": "step-after"},
        "encoding": {
            "x": _speedup("p", "p (speedup)", (low, high)),
            "y": {
                "field": "share",
                "type": "quantitative",
                "title": "samples faster than p",
                "scale": {"nice": 5},
                "axis": {"format": "%", "tickCount": 5},
            },
            **_coloured(len(charted(models))),
        },
    }


def distribution(models: Sequence[Scores], speedups: dict[str, list[float]]) -> Spec:
    """A histogram: speedups of the measured correct samples."""
    low, high = ends(speedups)
    counts: dict[tuple[int, int], int] = {}
    for series, scores in enumerate(charted(models)):
        for speedup in speedups.get(scores.model, []):
            held = min(max(speedup, low), high * 0.999)
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
            "x": _speedup("from", "speedup", (low, high)),
            "x2": {"field": "to"},
            "y": {
                "field": "count",
                "type": "quantitative",
                "aggregate": "sum",
                "stack": "zero",
                "title": "correct samples",
                "axis": {"tickMinStep": 1, "tickCount": 5, "format": "d"},
            },
            **_coloured(len(charted(models))),
        },
    }


def cost(models: Sequence[Scores]) -> Spec | None:
    """Tokens for each correct sample against the speedup over all problems; None where nothing is known."""
    values = [
        {
            "series": series,
            "tokens": s.tokens_per_correct.value,
            "speedup": s.geometric_mean_all.value,
        }
        for series, s in enumerate(charted(models))
        if s.tokens_per_correct.value and s.geometric_mean_all.value
    ]
    if not values:
        return None
    return {
        "data": {"values": values},
        "mark": {"type": "point", "filled": True, "size": 90},
        "encoding": {
            "x": {
                "field": "tokens",
                "type": "quantitative",
                "scale": {"type": "log", "nice": True},
                "title": "tokens for each correct sample",
                "axis": {"tickCount": 4, "format": "~s"},
            },
            "y": _mean("speedup", "speedup over all problems"),
            **_coloured(len(charted(models))),
        },
    }


def over_turns(by_turns: Sequence[tuple[int, Sequence[Scores]]], models: Sequence[Scores]) -> Spec | None:
    """The speedup over all problems after the first N turns; None where no sample has a second turn."""
    if len(by_turns) < 2:
        return None
    places = {scores.model: series for series, scores in enumerate(charted(models))}
    values = [
        {"series": places[s.model], "turns": turns, "speedup": s.geometric_mean_all.value}
        for turns, scores in by_turns
        for s in scores
        if s.model in places and s.geometric_mean_all.value
    ]
    if not values:
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
            "y": _mean("speedup", "speedup over all problems"),
            **_coloured(len(charted(models))),
        },
    }


def samples(m: Measurement) -> Spec:
    """The times of single calls, in the order in which they were taken."""
    values = []
    for side, blocks in enumerate((m.candidate_samples_ms, m.baseline_samples_ms)):
        flat = [ms for block in blocks for ms in block]
        step = max(1, -(-len(flat) // MOST_SAMPLES))
        values += [
            {"series": side, "call": number, "ms": flat[number]} for number in range(0, len(flat), step)
        ]
    return {
        "data": {"values": values},
        "height": 150,
        "mark": {"type": "circle", "size": 14, "opacity": 0.8},
        "encoding": {
            "x": {"field": "call", "type": "quantitative", "title": "call", "axis": {"tickCount": 5}},
            "y": {
                "field": "ms",
                "type": "quantitative",
                "title": "ms",
                "scale": {"zero": False, "nice": True},
                "axis": {"tickCount": 5},
            },
            **_coloured(2),
        },
    }


def ends(speedups: dict[str, list[float]]) -> tuple[float, float]:
    """The speedups from which to which an axis goes: a half to twice at least."""
    every = [speedup for found in speedups.values() for speedup in found]
    least, most = min([*every, 0.5]), max([*every, 2.0])
    low = max((tick for tick in _TICKS if tick <= least), default=_TICKS[0])
    return low, min((tick for tick in _TICKS if tick >= most), default=_TICKS[-1])


def _speedup(field: str, title: str, domain: tuple[float, float]) -> Spec:
    ticks = [tick for tick in _TICKS if domain[0] <= tick <= domain[1]]
    return {
        "field": field,
        "type": "quantitative",
        "title": title,
        "scale": {"type": "log", "domain": list(domain), "nice": False},
        "axis": {"values": ticks, "format": "~g"},
    }


def _mean(field: str, title: str) -> Spec:
    return {
        "field": field,
        "type": "quantitative",
        "title": title,
        "scale": {"zero": False, "nice": True},
        "axis": {"tickCount": 5},
    }


def _coloured(count: int) -> Spec:
    """Each series has the same colour in every chart."""
    scale = {"domain": list(range(count)), "range": list(SERIES[:count])}
    return {"color": {"field": "series", "type": "nominal", "scale": scale, "legend": None}}
