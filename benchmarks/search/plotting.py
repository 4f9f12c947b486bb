"""Plots of a comparison, drawn by Vega-Lite in the report's colours: light and dark, without a script."""

from __future__ import annotations

import re
from argparse import ArgumentParser
from collections.abc import Iterable, Sequence
from html import escape
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from benchmarks.search.comparing import Ratio, Table, marks
from kernelproof.report import web

Spec = dict[str, Any]
_STYLE = Path(web.__file__).parent / "templates" / "style.css"
_COLOURS = re.compile(r"^:root \{.*?^\}\n@media.*?^\}\n", re.DOTALL | re.MULTILINE)
_INK, _FAINT = "#111111", "#dddddd"
_SERIES = ("#4477aa", "#cc6677", "#228833", "#aa7700", "#66aacc", "#aa4499", "#777777", "#882255")
_VARIABLES = {_INK: "ink", _FAINT: "line"} | {colour: f"s{number}" for number, colour in enumerate(_SERIES)}
"""Colours of a plot, and the variables of style.css that replace them, in light and dark."""
_AXIS = {"labelColor": _INK, "titleColor": _INK, "domainColor": _INK, "tickColor": _INK, "gridColor": _FAINT}
_AXIS |= {"titleFontWeight": "normal", "labelSeparation": 6, "labelOverlap": "greedy", "labelLimit": 180}
_AXIS |= {"labelFontSize": 12, "titleFontSize": 12}
_LEGEND = {"title": None, "labelFontSize": 12, "symbolOpacity": 1}
_CONFIG: Spec = {"font": "sans-serif", "view": {"stroke": None}, "axis": _AXIS, "legend": _LEGEND}
_SPEEDUPS = (0.4, 0.6, 0.8, 0.9, 1, 1.1, 1.2, 1.3, 1.4, 1.6, 2, 3, 4)


def curves(found: Table, budget: int) -> Spec:
    """The best so far over the questions: geometric mean over all landscapes, bands are 95 % intervals."""
    values = []
    for strategy in found.strategies:
        for number, questions in enumerate(marks(budget)):
            values.append({"strategy": strategy, "questions": questions, **_of(found.gain(strategy, number))})
    shared = {
        "x": {
            "field": "questions",
            "type": "quantitative",
            "scale": {"type": "log", "base": 2, "domain": [1, budget]},
            "axis": {"values": list(marks(budget)), "format": "d"},
        },
        "color": _coloured(found.strategies),
    }
    value = {**_linear("value"), "title": "speedup of the best so far"}
    band = {"y": {**value, "field": "low"}, "y2": {"field": "high"}}
    return {
        "data": {"values": values},
        "layer": [
            {"mark": {"type": "area", "opacity": 0.15}, "encoding": {**shared, **band}},
            {"mark": {"type": "line", "point": {"size": 25}}, "encoding": {**shared, "y": value}},
        ],
    }


def by_landscape(found: Table, against: str) -> Spec:
    """The gain over that of one strategy on each landscape, and on all; lines are 95 % intervals."""
    others = [name for name in found.strategies if name != against]
    names = [*found.landscapes, "all"]
    values = []
    for strategy in others:
        for landscape in found.landscapes:
            ratio = found.ratio(landscape, strategy, against)
            values.append({"strategy": strategy, "landscape": landscape, **_of(ratio)})
        values.append({"strategy": strategy, "landscape": "all", **_of(found.overall(strategy, against))})
    shared = {
        "y": {"field": "landscape", "type": "nominal", "sort": names, "title": None},
        "yOffset": {"field": "strategy", "type": "nominal", "sort": others},
        "color": _coloured(found.strategies, others),
    }
    axis = {"values": list(_SPEEDUPS), "format": "~g"}
    along = {"type": "quantitative", "scale": {"type": "log", "nice": False, "zero": False}, "axis": axis}
    x = {**along, "title": f"gain over that of {against}"}
    no_gain = {"data": {"values": [{"at": 1}]}, "mark": {"type": "rule", "color": _INK}}
    return {
        "data": {"values": values},
        "height": 34 * len(names),
        "layer": [
            {**no_gain, "encoding": {"x": {"field": "at", **x}}},
            {
                "mark": {"type": "rule", "strokeWidth": 2},
                "encoding": {**shared, "x": {"field": "low", **x}, "x2": {"field": "high"}},
            },
            {
                "mark": {"type": "point", "filled": True, "size": 35, "opacity": 1},
                "encoding": {**shared, "x": {"field": "value", **x}},
            },
        ],
    }


def seconds(rows: Iterable[tuple[str, str, str, float]]) -> Spec:
    """The seconds that the device is held in a search. Each row: machine, strategy, how it was verified,
    seconds."""
    rows = list(rows)
    values = [
        {"search": f"{machine}, {strategy}", "verified": verified, "seconds": spent}
        for machine, strategy, verified, spent in rows
    ]
    machines = {machine for machine, *_ in rows}
    ways = list(dict.fromkeys(verified for _, _, verified, _ in rows))
    order = list(dict.fromkeys(each["search"] for each in values))
    return {
        "data": {"values": values},
        "height": 22 * len(order) * len(ways) / 2 + 20 * len(machines),
        "mark": {"type": "bar"},
        "encoding": {
            "y": {"field": "search", "type": "nominal", "sort": order, "title": None},
            "yOffset": {"field": "verified", "type": "nominal", "sort": ways},
            "x": {**_linear("seconds"), "title": "seconds of the device, one search"},
            "color": {**_coloured(ways), "field": "verified"},
        },
    }


def require(parser: ArgumentParser) -> None:
    """Ends the command where the package that draws is missing."""
    if find_spec("vl_convert") is None:
        parser.exit(3, "the package vl-convert-python is missing; pip install vl-convert-python\n")


def write(folder: Path, name: str, spec: Spec, title: str) -> Path:
    """Writes `name`.svg."""
    import vl_convert

    colours = _COLOURS.search(_STYLE.read_text())
    assert colours is not None
    rules = "".join(
        f'svg [{part}="{colour}"] {{ {part}: var(--{variable}); }}\n'
        for colour, variable in _VARIABLES.items()
        for part in ("fill", "stroke")
    )
    whole = {"width": 340, "height": 200, "background": "transparent", "config": _CONFIG, **spec}
    text = vl_convert.vegalite_to_svg(whole, allowed_base_urls=[])
    head, rest = text.split(">", 1)
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / f"{name}.svg"
    file.write_text(
        f'{head} role="img" aria-label="{escape(title)}">\n<style>\n{colours[0]}'
        f"svg {{ background: var(--page); }}\nsvg text {{ fill: var(--ink); }}\n{rules}</style>\n{rest}\n"
    )
    return file


def _of(ratio: Ratio) -> Spec:
    return {"value": ratio.ratio, "low": ratio.low, "high": ratio.high}


def _linear(field: str) -> Spec:
    scale = {"zero": field == "seconds", "nice": True}
    return {"field": field, "type": "quantitative", "scale": scale, "axis": {"tickCount": 5}}


def _coloured(every: Sequence[str], shown: Sequence[str] | None = None) -> Spec:
    """Each strategy has the same colour in all plots of a comparison; the legend has those that are shown."""
    chosen = [name for name in every if shown is None or name in shown]
    colours = [_SERIES[every.index(name) % len(_SERIES)] for name in chosen]
    return {"field": "strategy", "type": "nominal", "scale": {"domain": chosen, "range": colours}}
