"""Charts as SVG, each a path whose look style.css has by its class; and those of a board and of a kernel."""

from __future__ import annotations

import math
import statistics
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise

from markupsafe import Markup

from kernelproof.db.scores.groups import TokensPoint, TurnsPoint
from kernelproof.db.scores.records import Kernel, ProblemScores, Scores
from kernelproof.report.findings import finding
from kernelproof.report.layout import percent, scaled
from kernelproof.report.web.facts import AttemptPage, Board
from kernelproof.report.web.rendering import fragment
from kernelproof.types import Measurement, Roofline
from kernelproof.wording import counted

SHAPES = (
    "m0-3a3 3 0 1 0 .01 0z",
    "m-3-3h6v6h-6z",
    "m0-4l4 7h-8z",
    "m0-4l3 4-3 4-3-4z",
    "m-1-3h2v2h2v2h-2v2h-2v-2h-2v-2h2z",
    "m0 4l4-7h-8z",
    "m-3-4l7 4-7 4z",
    "m3-4l-7 4 7 4z",
)
MOST_SERIES = len(SHAPES)
WIDTH, HEIGHT = 340, 200
"""Pixels of the space between the axes: narrow enough for a phone."""
_LEFT, _RIGHT, _TOP, _BOTTOM = 60, 18, 8, 40
_LABELS = 6
_ROOM = 1.1
"""Between the last point and the end of an axis."""
Place = tuple[float, float]


def plain(value: float) -> str:
    """`0.5`, `20`."""
    return f"{value:.6g}"


def short(value: float) -> str:
    """`200k`, `5M`; small numbers as they are."""
    return scaled(value, "").replace(" ", "")


@dataclass(frozen=True)
class Axis:
    """An axis from one number to another. Values beyond an end stand at it."""

    title: str
    low: float
    high: float
    ticks: Sequence[float]
    label: Callable[[float], str] = plain
    logarithmic: bool = False

    def at(self, value: float) -> float:
        """The place of a value, from 0 to 1."""
        low, high, value = self.low, self.high, min(max(value, self.low), self.high)
        if self.logarithmic:
            low, high, value = math.log(low), math.log(high), math.log(value)
        return (value - low) / (high - low)


def linear(
    title: str,
    low: float,
    high: float,
    label: Callable[[float], str] = plain,
    *,
    whole: bool = False,
    nice: bool = True,
) -> Axis:
    """A linear axis around two values, which need not be different. `whole`: ticks are whole numbers.
    `nice`: it begins and ends at a tick."""
    span = high - low if high - low > 1e-9 * abs(high) + 1e-30 else max(abs(high), 1e-9)
    step = next(step for step in _steps(span / 100, span * 10) if span / step <= 5)
    step = max(step, 1.0) if whole else step
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    ticks = [number * step for number in range(first, max(last, first + 1) + 1)]
    if nice:
        return Axis(title, ticks[0], ticks[-1], ticks, label)
    return Axis(title, low, high, [tick for tick in ticks if low <= tick <= high], label)


def logarithmic(title: str, values: Iterable[float], label: Callable[[float], str] = plain) -> Axis:
    """A logarithmic axis around some positive values, from and to numbers like 1, 2, 5 or 10."""
    every = list(values)
    steps = _steps(min(every) / 10, max(every) * 10)
    low, high = min(every) / _ROOM, max(every) * _ROOM
    low, high = max(step for step in steps if step <= low), min(step for step in steps if step >= high)
    ticks = _steps(low, high)
    if len(ticks) > _LABELS:
        tens = [tick for tick in ticks if f"{tick:e}".startswith("1.0")]
        ticks = tens[:: -(-len(tens) // _LABELS)]
    return Axis(title, low, high, ticks, label, logarithmic=True)


def _steps(low: float, high: float) -> list[float]:
    """1, 2, 5 and their tenfolds, from one positive number to another."""
    powers = range(math.floor(math.log10(low)) - 1, math.ceil(math.log10(high)) + 1)
    every = (float(f"{digit}e{power}") for power in powers for digit in (1, 2, 5))
    return [step for step in every if low * 0.999 <= step <= high * 1.001]


@dataclass(frozen=True)
class Mark:
    look: str
    """Its classes in style.css, such as `line s0`."""
    path: str
    says: str = ""
    href: str | None = None


class Chart:
    """A chart. Series are numbered: a text of a server's or a candidate's is at most the words of a point."""

    def __init__(self, x: Axis, y: Axis, height: int = HEIGHT) -> None:
        self.x, self.y, self.height = x, y, height
        self.marks: list[Mark] = []

    def _at(self, place: Place) -> str:
        across, up = self.x.at(place[0]), self.y.at(place[1])
        return f"{_LEFT + across * WIDTH:.1f} {_TOP + (1 - up) * self.height:.1f}"

    def line(
        self,
        series: int | None,
        places: Iterable[Place],
        *,
        steps: bool = False,
        knots: bool = False,
        look: str = "line",
    ) -> None:
        """A line from place to place. None: the device's, not a model's. `steps`: level to the next place,
        then up or down. `knots`: places are marked. `look`: `line` or `thin`."""
        every = list(places)
        if not every:
            return
        corners = [
            place
            for before, after in pairwise(every)
            for place in ([(after[0], before[1]), after] if steps else [after])
        ]
        path = "L".join(map(self._at, [every[0], *corners]))
        owner = "ink" if series is None else f"s{series}"
        self.marks.append(Mark(f"{look} {owner}", f"M{path}"))
        if knots:
            self.dots(series or 0, every, "knots")

    def dots(self, series: int, places: Iterable[Place], look: str = "dots") -> None:
        """Small dots, as one path of strokes without length and with round ends."""
        path = "".join(f"M{self._at(place)}h0" for place in places)
        if path:
            self.marks.append(Mark(f"{look} s{series}", path))

    def point(self, series: int, place: Place, says: str = "", href: str | None = None) -> None:
        self.marks.append(Mark(f"fill point s{series}", f"M{self._at(place)}{SHAPES[series]}", says, href))

    def rule(self, x: float) -> None:
        """A faint upright line."""
        across = f"{_LEFT + self.x.at(x) * WIDTH:.1f}"
        self.marks.append(Mark("rule", f"M{across} {_TOP}V{_TOP + self.height}"))

    @property
    def size(self) -> tuple[int, int]:
        """Width and height of the drawing in pixels, axes included."""
        return _LEFT + WIDTH + _RIGHT, _TOP + self.height + _BOTTOM

    def drawn(self, title: str) -> Markup:
        """The SVG. `title`: what a screen reader says of it, in a sentence."""
        right, bottom = _LEFT + WIDTH, _TOP + self.height
        width, height = self.size
        across = [(f"{_LEFT + self.x.at(t) * WIDTH:.1f}", self.x.label(t)) for t in self.x.ticks]
        up = [(f"{_TOP + (1 - self.y.at(t)) * self.height:.1f}", self.y.label(t)) for t in self.y.ticks]
        labels = [(x, bottom + 16, "middle", text) for x, text in apart(across)]
        facts = {
            "title": title,
            "role": "group" if any(mark.says for mark in self.marks) else "img",  # an image has no parts
            "width": width,
            "height": height,
            "grid": "".join(f"M{x} {_TOP}V{bottom}" for x, _ in across)
            + "".join(f"M{_LEFT} {y}H{right}" for y, _ in up),
            "frame": f"M{_LEFT} {_TOP}V{bottom}H{right}",
            "labels": [*labels, *((_LEFT - 6, f"{float(y) + 4:.1f}", "end", text) for y, text in up)],
            "middle": (_LEFT + WIDTH // 2, _TOP + self.height // 2),
            "axes": (self.x, self.y),
            "marks": self.marks,
        }
        return fragment("chart.svg", facts)


def apart(labels: Iterable[tuple[str, str]]) -> Iterator[tuple[str, str]]:
    """The labels of an axis from left to right, without those that would touch the one before."""
    end = -math.inf
    for at, text in labels:
        half = 3.5 * len(text) + 3
        if float(at) - half >= end:
            yield at, text
            end = float(at) + half


TICKS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50, 100)
"""Of speedups: those beyond the first or the last stand at the edge of a chart."""
MOST_CALLS = 300
_STEPS = 60
_EDGE = 1.15
"""How far above the slowest block's median a chart of times ends."""
_THIN = "the thin line: those with a kernel that is surely faster."
_MOST_KNOTS = 40


@dataclass(frozen=True)
class Picture:
    drawn: Markup
    caption: str


@dataclass(frozen=True)
class Pictures:
    """The charts of a board. A part without anything to draw is empty."""

    speed: list[Picture]
    roofline: list[Picture]
    cost: list[Picture]


def charted(models: Sequence[Scores]) -> list[Scores]:
    """The models that have a series: those with most judged samples."""
    most = sorted(models, key=lambda s: -s.correct.whole)[:MOST_SERIES]
    return [scores for scores in models if scores in most]


def board_pictures(board: Board, href: Callable[[int], str | None]) -> Pictures:
    """All charts of one board. `href`: attempt to where its page is, if anywhere."""
    models = charted(board.models)
    curves = [board.curves.get(scores.model) for scores in models]
    of = f"{counted(len(models), 'model')}; the table of models has the figures"
    return Pictures(
        speed=_drawn(
            (
                fast_p(board, models),
                f"Curves of fast_p for {of}",
                "The part of the judged samples that is correct and faster than p (fast_p). A speedup of "
                "unresolved pace counts as 1 at most.",
            )
        ),
        roofline=_rooflines(board, models, href),
        cost=_drawn(
            (
                over_turns([found.turns if found else () for found in curves]),
                f"Problems solved after each number of turns, {of}",
                f"Problems that each model solves if a sample may have so many turns; {_THIN}",
            ),
            (
                over_budgets([found.budgets if found else () for found in curves]),
                f"Problems solved over the tokens that each may cost, {of}",
                "Problems solved if the attempts on each may cost so many tokens, counted in the order in "
                f"which they were begun; {_THIN}",
            ),
        ),
    )


def _drawn(*wanted: tuple[Chart | None, str, str]) -> list[Picture]:
    """A picture for each chart that there is: the chart, what a screen reader says, the caption."""
    return [Picture(chart.drawn(said), caption) for chart, said, caption in wanted if chart is not None]


def speedups(title: str, values: Iterable[float]) -> Axis:
    """A logarithmic axis of speedups: from a half or less to twice or more."""
    every = list(values)
    least, most = min([*every, 0.5]), max([*every, 2.0])
    low = max((tick for tick in TICKS if tick <= least), default=TICKS[0])
    high = min((tick for tick in TICKS if tick >= most), default=TICKS[-1])
    return Axis(title, low, high, [tick for tick in TICKS if low <= tick <= high], logarithmic=True)


def fast_p(board: Board, models: Sequence[Scores]) -> Chart | None:
    """For each model the part of its judged samples that is correct and faster than p; None where nothing was
    measured."""
    ratios = [board.curves[s.model].speedups if s.model in board.curves else () for s in models]
    if not any(ratios):
        return None
    x = speedups("p (speedup)", (each for some in ratios for each in some))
    every = [x.low * (x.high / x.low) ** (step / _STEPS) for step in range(_STEPS + 1)]
    lines = [
        [(p, (len(some) - bisect_right(some, p)) / max(scores.correct.whole, 1)) for p in every]
        for scores, some in zip(models, ratios, strict=True)
    ]
    most = max(share for line in lines for _, share in line)
    chart = Chart(x, linear("samples faster than p", 0, most, lambda share: f"{100 * share:.3g}%"))
    for series, line in enumerate(lines):
        chart.line(series, line, steps=True)
    return chart


def over_turns(curves: Sequence[Sequence[TurnsPoint]]) -> Chart | None:
    """Problems that are solved, and surely faster, after the first N turns; None where no sample has a second
    turn."""
    most = max((point.turns for curve in curves for point in curve), default=0)
    if most < 2:
        return None
    return _counts(Axis("turns allowed", 0.5, most + 0.5, range(1, most + 1)), curves, steps=False)


def over_budgets(curves: Sequence[Sequence[TokensPoint]]) -> Chart | None:
    """Problems that are solved, and surely faster, if each may cost so many tokens; None where that is one
    point at most."""
    budgets = {point.tokens for curve in curves for point in curve}
    if len(budgets) < 2:
        return None
    return _counts(logarithmic("tokens for each problem", budgets, short), curves, steps=True)


def _counts(x: Axis, curves: Sequence[Sequence[tuple[float, int, int]]], *, steps: bool) -> Chart:
    """For each series two lines from 0 on: problems solved, and a thin one, surely faster."""
    most = max(solved for curve in curves for _, solved, _ in curve)
    chart = Chart(x, linear("problems", 0, most, whole=True))
    for series, curve in enumerate(curves):
        chart.line(series, [(at, solved) for at, solved, _ in curve], steps=steps, knots=not steps)
        chart.line(series, [(at, faster) for at, _, faster in curve], steps=steps, look="thin")
    return chart


@dataclass(frozen=True)
class Placed:
    """A kernel and the roofline of its problem. `series`: its model's place among the charted ones."""

    series: int
    candidate_ms: float
    roofline: Roofline
    says: str = ""
    href: str | None = None

    @property
    def least_ms(self) -> float:
        return max(self.roofline.memory_ms, self.roofline.compute_ms)

    @property
    def intensity(self) -> float:
        """Operations for each byte that must be moved; writes that fit the last-level cache are left out."""
        moved = self.roofline.memory_ms / 1e3 * self.roofline.ceilings.bytes_per_s
        return self.roofline.operations / moved if moved else 0.0

    @property
    def operations_per_s(self) -> float:
        return self.roofline.operations / (self.candidate_ms / 1e3)


def _rooflines(board: Board, models: Sequence[Scores], href: Callable[[int], str | None]) -> list[Picture]:
    series = {scores.model: number for number, scores in enumerate(models)}
    best = [(problem, problem.best) for problem in board.problems if problem.best is not None]
    kernels = [
        Placed(
            series[kernel.model],
            kernel.candidate_ms,
            found.roofline,
            _words(problem, kernel),
            href(kernel.attempt_id),
        )
        for problem, kernel in best
        if kernel.model in series
        and (found := board.evidence.get(kernel.verification_id)) is not None
        and found.roofline is not None
    ]
    of = f"{counted(len(kernels), 'kernel')}; the table of problems has the fraction of the roofline"
    return _drawn(
        (
            roofline(kernels),
            f"Roofline plot of {of}",
            "What the best kernels reach, below what the device was seen to do (the line). Operations are "
            "those of products, convolutions and attention: a kernel without them stands in the other chart.",
        ),
        (
            beside_roofline(kernels),
            f"Time against the roofline's time of {of}",
            "The time of each best kernel, against the least time in which its data can be moved and its "
            "operations be done. On the line both are equal; ten times as high is a tenth of the roofline.",
        ),
    )


def _words(problem: ProblemScores, best: Kernel) -> str:
    part = f", {percent(best.roofline_fraction)} of the roofline" if best.roofline_fraction else ""
    return (
        f"{problem.problem_id} {problem.problem}: {best.candidate_ms:.4g} ms{part}, "
        f"{finding(best.speedup, best.interval, best.pace)}, by {best.model}, attempt #{best.attempt_id}"
    )


def roofline(kernels: Sequence[Placed]) -> Chart | None:
    """The roofline plot of Williams et al. 2009: operations a second over operations a byte, below the roof.

    None where no kernel's operations are counted. The roof is the median of the kernels' ceilings.
    """
    shown = {each: (each.intensity, each.operations_per_s) for each in kernels if each.intensity > 0}
    if not shown:
        return None
    bandwidth = statistics.median(kernel.roofline.ceilings.bytes_per_s for kernel in shown)
    peak = statistics.median(kernel.roofline.ceilings.operations_per_s for kernel in shown)
    ridge = peak / bandwidth
    x = logarithmic(
        "operations for each byte moved", [*(at for at, _ in shown.values()), ridge / 3, ridge * 3], short
    )
    y = logarithmic("operations a second", [*(up for _, up in shown.values()), peak], short)
    roof = [(at, min(peak, at * bandwidth)) for at in (max(x.low, y.low / bandwidth), ridge, x.high)]
    return _below(Chart(x, y), roof, shown)


def beside_roofline(kernels: Sequence[Placed]) -> Chart | None:
    """Each kernel's time over the time that its roofline allows; on the line they are equal."""
    shown = {kernel: (kernel.least_ms, kernel.candidate_ms) for kernel in kernels if kernel.least_ms > 0}
    if not shown:
        return None
    both = partial(logarithmic, values=[ms for place in shown.values() for ms in place], label=plain)
    chart = Chart(both("least time by the roofline (ms)"), both("the kernel's time (ms)"))
    return _below(chart, [(end, end) for end in (chart.x.low, chart.x.high)], shown)


def _below(chart: Chart, line: Iterable[Place], kernels: Mapping[Placed, Place]) -> Chart:
    chart.line(None, line)
    for kernel, place in kernels.items():
        chart.point(kernel.series, place, kernel.says, kernel.href)
    return chart


def rounds_picture(page: AttemptPage) -> Picture | None:
    """The times of both sides round by round; None where the record has none."""
    m = page.verification.measurement if page.verification else None
    if m is None or not any(m.candidate_samples_ms):
        return None
    said = (
        f"Times of {counted(len(m.candidate_samples_ms), 'round')}: candidate, {m.candidate_ms:.4g} ms "
        f"claimed; {m.baseline}, median {m.baseline_ms:.4g} ms"
    )
    fresh = " A pale upright line: fresh processes." if len(set(m.sessions)) > 1 else ""
    return Picture(
        rounds(m).drawn(said),
        "The median of each round's calls (lines), and single calls (dots; of many, some). A call that "
        f"took much longer stands at the upper edge.{fresh}",
    )


def rounds(m: Measurement) -> Chart:
    """The times of both sides round by round: the median of each block, and single calls behind it.

    A call that took much longer than any block's median stands at the upper edge.
    """
    sides = [list(enumerate(blocks, start=1)) for blocks in (m.candidate_samples_ms, m.baseline_samples_ms)]
    medians = [[(number, statistics.median(block)) for number, block in side if block] for side in sides]
    top = _EDGE * max(median for side in medians for _, median in side)
    calls = [[(number, min(ms, top)) for number, block in side for ms in block] for side in sides]
    some = [every[:: max(1, -(-len(every) // MOST_CALLS))] for every in calls]
    shown = [ms for every in (*some, *medians) for _, ms in every]
    count = len(m.candidate_samples_ms)
    chart = Chart(
        linear("round", 0.5, count + 0.5, whole=True, nice=False), linear("ms", min(shown), max(shown)), 150
    )
    for number, (before, after) in enumerate(zip(m.sessions, m.sessions[1:], strict=False), start=2):
        if before != after:
            chart.rule(number - 0.5)
    for series, every in enumerate(some):
        chart.dots(series, every)
    for series, line in enumerate(medians):
        chart.line(series, line, knots=count <= _MOST_KNOTS)
    return chart
