"""Charts as SVG text: Vega-Lite draws them, and what it wrote is rebuilt from the few parts a page may hold.

An element or attribute that no chart of ours needs is left out. Colours stay as they were chosen; the page's
style replaces them by its own.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, NamedTuple
from xml.etree import ElementTree

from markupsafe import Markup, escape

from kernelproof.errors import MachineError
from kernelproof.report.plain import visible

INK, FAINT, NONE = "#111111", "#dddddd", "transparent"
"""Stand-ins for text and axes, for grid lines; style.css gives them their colours, in light and dark."""
SERIES = ("#4477aa", "#cc6677", "#228833", "#aa7700", "#66aacc", "#aa4499", "#777777", "#882255")
"""One colour for each of up to eight models."""
DASHES = ((1, 0), (7, 3), (2, 2), (9, 3, 2, 3), (4, 2), (12, 3), (1, 3), (6, 2, 1, 2, 1, 2))
"""The same as lines: pixels drawn and left out."""
SHAPES = (
    "circle",
    "square",
    "triangle-up",
    "diamond",
    "cross",
    "triangle-down",
    "triangle-right",
    "triangle-left",
)
"""The same as points."""
MARKS = (
    "M12 3a3 3 0 1 0 .01 0z",
    "M9 3h6v6h-6z",
    "M12 2l4 7h-8z",
    "M12 2l3 4-3 4-3-4z",
    "M11 3h2v2h2v2h-2v2h-2v-2h-2v-2h2z",
    "M12 10l4-7h-8z",
    "M9 2l7 4-7 4z",
    "M15 2l-7 4 7 4z",
)
"""The shapes once more, as paths in the middle of 24 by 12 pixels: for the words that say whose they are."""
WIDTH, HEIGHT = 340, 200
"""Pixels of the space between the axes: narrow enough for a phone."""

_NAMESPACE = "{http://www.w3.org/2000/svg}"
_ELEMENTS = {"svg", "g", "path", "line", "rect", "text", "tspan", "circle"}
_PLACE = {"viewBox", "d", "x", "y", "x1", "x2", "y1", "y2", "width", "height", "cx", "cy", "r", "dx", "dy"}
_LOOK = {
    "transform",
    "fill",
    "stroke",
    "stroke-width",
    "opacity",
    "fill-opacity",
    "stroke-opacity",
    "stroke-dasharray",
    "text-anchor",
}
_ATTRIBUTES = _PLACE | _LOOK
_NUMBER = re.compile(r"-?\d+\.\d{3,}")
_PLACED = re.compile(r"translate\((-?[\d.e-]+),(-?[\d.e-]+)\)")
_CIRCLE = re.compile(r"M([\d.]+),0A\1,\1,")
_MANY = 20
_USUAL = {"opacity": "1", "stroke-width": "1"}
"""The value of an attribute that is left out."""
_NOTHING = "M0,0h0v0h0Z"


def require() -> None:
    """Raises MachineError when the packages of the extra `report` are missing."""
    try:
        import pygments  # noqa: F401
        import vl_convert  # noqa: F401
    except ImportError as error:
        raise MachineError(
            f"the package {(error.name or 'vl_convert').replace('_', '-')} is missing; "
            "install what reports need: pip install 'kernelproof[report]'"
        ) from None


class Point(NamedTuple):
    """The meaning of a point of a chart."""

    says: str
    """In words: shown beside the pointer, and read to those who do not see the point."""
    href: str | None
    """Where a link leads from it."""


def point_name(number: int) -> str:
    """How a specification names the point `number`, in the channel `description`."""
    return f"point {number}"


def draw(spec: dict[str, Any], title: str, points: Sequence[Point] = ()) -> Markup:
    """The SVG of a Vega-Lite chart. `title`: what a screen reader says of it, in a sentence.

    `points`: what the points with a `point_name` stand for.
    """
    import vl_convert

    whole = {"background": NONE, "width": WIDTH, "height": HEIGHT, "config": CONFIG, **spec}
    text = vl_convert.vegalite_to_svg(whole, allowed_base_urls=[])
    root = ElementTree.fromstring(text)
    box = re.sub(r"[^\d. -]", "", root.get("viewBox", ""))
    named = {point_name(number): point for number, point in enumerate(points)}
    inside = "".join(_written(child, named) for child in root)
    role = "group" if named else "img"  # an image has no parts that are reached one by one
    return Markup('<svg role="{}" viewBox="{}" width="{}" aria-label="{}">{}</svg>').format(
        role, box, box.split()[2], visible(title), Markup(inside)
    )


def _written(element: ElementTree.Element, named: dict[str, Point]) -> str:
    """An element, if a chart may hold it, with all that is within."""
    name = element.tag.removeprefix(_NAMESPACE)
    if name not in _ELEMENTS or element.get("display") == "none":
        return ""
    within = "" if named else _dots(element)
    inside = within or "".join(_written(child, named) for child in element) or escape(element.text or "")
    if (name == "g" and not inside.strip()) or element.get("d") == _NOTHING:
        return ""
    kept = "".join(
        f' {key}="{escape(_NUMBER.sub(_rounded, value))}"'
        for key, value in element.attrib.items()
        if key in _ATTRIBUTES and value != _USUAL.get(key, "none")
    )
    fill = ' fill="none"' if element.get("fill") in ("none", NONE) else ""
    kept = kept.replace(f' fill="{NONE}"', "")
    if named and "role-axis" in element.get("class", "").split():
        kept += ' aria-hidden="true"'
    written = f"<{name}{kept}{fill}>{inside}</{name}>" if inside else f"<{name}{kept}{fill}/>"
    point = named.get(element.get("aria-label", ""))
    return written if point is None else _explained(written, point)


def _explained(written: str, point: Point) -> str:
    """A point with its words, within its link."""
    says = escape(visible(point.says))
    words = f"<title>{says}</title>{written}"
    if point.href is None:
        return f'<g role="img" aria-label="{says}">{words}</g>'
    return f'<a href="{escape(point.href)}" aria-label="{says}">{words}</a>'


def _dots(group: ElementTree.Element) -> str:
    """Many circles as one path for all that look alike, of strokes without length and with round ends: a
    tenth of the bytes. Empty for anything else."""
    paths: dict[tuple[str, ...], list[str]] = {}
    for child in group:
        at = _PLACED.fullmatch(child.get("transform", ""))
        circle = _CIRCLE.match(child.get("d", ""))
        if at is None or circle is None:
            return ""
        look = (circle[1], child.get("fill", INK), child.get("opacity", "1"))
        paths.setdefault(look, []).append(f"M{float(at[1]):.1f},{float(at[2]):.1f}h0")
    if len(group) < _MANY:
        return ""
    return "".join(
        f'<path d="{"".join(path)}" fill="none" stroke="{escape(fill)}" opacity="{escape(opacity)}" '
        f'stroke-width="{2 * float(radius):.2f}" stroke-linecap="round"/>'
        for (radius, fill, opacity), path in paths.items()
    )


def _rounded(found: re.Match[str]) -> str:
    return f"{float(found[0]):.2f}"


CONFIG: dict[str, Any] = {
    "font": "sans-serif",
    "view": {"stroke": None},
    "axis": {
        "labelColor": INK,
        "titleColor": INK,
        "domainColor": INK,
        "tickColor": INK,
        "gridColor": FAINT,
        "labelFontSize": 12,
        "titleFontSize": 12,
        "titleFontWeight": "normal",
        "labelLimit": 180,
        "labelSeparation": 6,
        "labelOverlap": "greedy",
    },
}
