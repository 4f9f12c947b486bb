"""The forest plot of a board, and figures for a paper.

In a forest plot each problem's best kernel has its speedup and the interval of that on a logarithmic axis,
with a line at 1. `write_figures` writes it and the curve of fast_p as files: SVG, and PNG where vl-convert is
installed.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from markupsafe import Markup

from kernelproof.errors import writing
from kernelproof.report.findings import finding
from kernelproof.report.leaderboard import outcome
from kernelproof.report.web.charts import SHAPES, Mark, apart, charted, fast_p, plain, speedups
from kernelproof.report.web.facts import Board, closing_line, headline
from kernelproof.report.web.rendering import file, fragment
from kernelproof.types import Interval, Pace

_DOT = "m0-5a5 5 0 1 0 .01 0z"
_TOP, _BOTTOM = 30, 26
"""Pixels above and below the rows."""
_ROW, _LEAST_ROW, _LABELLED_ROW, _ROWS_HEIGHT = 24, 4, 14, 1000
"""Pixels of a row; rows shrink from there on to fit the height, and lose their words below the third."""


@dataclass(frozen=True)
class Row:
    name: str
    speedup: float | None
    """None where it has no kernel that was timed; so is the interval."""
    interval: Interval | None
    pace: Pace | None
    figures: str
    """The speedup, its interval and the finding, such as `1.23× [1.18, 1.33] faster`."""
    says: str
    href: str | None


@dataclass(frozen=True)
class Layout:
    """Pixels of the three columns: names, plot, figures."""

    left: int
    plot: int
    right: int
    look: str

    @property
    def width(self) -> int:
        return self.left + self.plot + self.right


WIDE = Layout(240, 510, 450, "wide")
"""As wide on the right as the longest finding needs: `0.93× [0.93, 1.01] unresolved (unsteady: ...)`."""
NARROW = Layout(66, 200, 94, "narrow")
"""For a phone: ids without names, speedups without intervals."""


def forest_rows(board: Board, href: Callable[[int], str | None]) -> list[Row]:
    """The problems of a board, the fastest first; those without a timed kernel come last."""
    rows = []
    for problem in board.problems:
        best, name = problem.best, f"{problem.problem_id} {problem.problem}"
        if best is None:
            words = outcome(problem)
            rows.append(Row(name, None, None, None, words, f"{name}: {words}", None))
            continue
        evidence = board.evidence.get(best.verification_id)
        because = evidence.unresolved_because if evidence else None
        words = finding(best.speedup, best.interval, best.pace, because)
        says = f"{name}: {words}, by {best.model}, attempt #{best.attempt_id}"
        rows.append(Row(name, best.speedup, best.interval, best.pace, words, says, href(best.attempt_id)))
    return sorted(rows, key=lambda row: -(row.speedup or 0.0))


def _step(rows: Sequence[Row]) -> int:
    """Pixels from one row to the next."""
    return max(_LEAST_ROW, min(_ROW, _ROWS_HEIGHT // max(len(rows), 1)))


def forest(rows: list[Row], layout: Layout, title: str) -> Markup:
    """The SVG. `title`: what a screen reader says of it, in a sentence."""
    step = _step(rows)
    labelled = step >= _LABELLED_ROW
    if not labelled:  # names and figures are in the words of each mark, and in the table of problems
        layout = Layout(20, layout.width - 40, 20, layout.look)
    ends = [end for row in rows if row.interval for end in (row.interval.low, row.interval.high)]
    axis = speedups("speedup", ends)

    def across(value: float) -> float:
        return layout.left + axis.at(value) * layout.plot

    bottom = _TOP + step * len(rows)
    marks: list[tuple[Mark, Mark]] = []
    texts: list[tuple[str, str, str, str]] = []
    for number, row in enumerate(rows):
        middle = _TOP + step * (number + 0.5)
        if row.interval is not None and row.speedup is not None:
            low, high = across(row.interval.low), across(row.interval.high)
            path = f"M{low:.1f} {middle:.1f}H{high:.1f}"
            if labelled:
                path += "".join(f"M{end:.1f} {middle - 4:.1f}v8" for end in (low, high))
            dot = f"M{across(row.speedup):.1f} {middle:.1f}{_DOT if labelled else 'h0'}"
            look = f"{'dot' if labelled else 'spot'} {row.pace}"
            marks.append((Mark(f"whisker {row.pace}", path, row.says, row.href), Mark(look, dot)))
        if labelled:
            texts += _words(row, layout, middle + 4)
    ticks = [(f"{across(tick):.1f}", f"{plain(tick)}×") for tick in axis.ticks]
    one = f"{across(1):.1f}"
    facts = {
        "title": title,
        "look": layout.look,
        "width": layout.width,
        "height": bottom + _BOTTOM,
        "grid": "".join(f"M{x} {_TOP}V{bottom}" for x, _ in ticks),
        "one": f"M{one} {_TOP - 6}V{bottom}",
        "at_one": one,
        "base": bottom + 17,
        "ticks": list(apart(ticks)),
        "texts": texts,
        "marks": marks,
    }
    return fragment("forest.svg", facts)


def _words(row: Row, layout: Layout, y: float) -> Iterable[tuple[str, str, str, str]]:
    """The texts beside the plot: x, y, class, text."""
    name, figures, pace = row.name, row.figures, row.pace or "quiet"
    if layout is NARROW:
        name, figures = name.split(" ")[0], figures.split(" ")[0] if row.interval else "-"
    if len(name) > layout.left // 7:
        name = f"{name[: layout.left // 7 - 1]}…"
    yield "0", f"{y:.1f}", "name", name
    yield str(layout.left + layout.plot + 12), f"{y:.1f}", str(pace), figures


SCALE = 2.0
"""Pixels of a PNG for each of an SVG's."""


def write_figures(boards: Sequence[Board], folder: Path, title: str | None = None) -> list[Path]:
    """Writes `forest` and `fast_p` into a folder, which is made where there is none, as .svg, and as .png
    where vl-convert is installed; with a number where there are several boards. Their paths. `title`: None:
    what the data say.

    Raises MachineError where they cannot be written.
    """
    written = []
    with writing(folder):
        folder.mkdir(parents=True, exist_ok=True)
        for number, board in enumerate(boards, 1):
            for name, svg in figures(board, title).items():
                path = folder / (f"{name}-{number}.svg" if len(boards) > 1 else f"{name}.svg")
                path.write_text(svg, encoding="utf-8")
                written.append(path)
                if (png := as_png(svg)) is not None:
                    written.append(path.with_suffix(".png"))
                    written[-1].write_bytes(png)
    return written


def figures(board: Board, title: str | None = None) -> dict[str, str]:
    """The figures of a board by their names, each as an SVG that needs nothing else."""
    title, models = title or headline(board), charted(board.models)
    rows = forest_rows(board, lambda _: None)
    size = WIDE.width, _TOP + _step(rows) * len(rows) + _BOTTOM
    found = {"forest": _figure(title, closing_line(board), forest(rows, WIDE, title), size)}
    curves = fast_p(board, models)
    if curves is not None:
        said = "Samples that are correct and faster than p"
        found["fast_p"] = _figure(
            title, said, curves.drawn(said), curves.size, [scores.model for scores in models]
        )
    return found


def as_png(svg: str) -> bytes | None:
    """The figure as PNG; None where vl-convert is missing."""
    try:
        import vl_convert
    except ImportError:
        return None
    return bytes(vl_convert.svg_to_png(svg, scale=SCALE))


def _figure(title: str, line: str, drawn: Markup, size: tuple[int, int], series: Sequence[str] = ()) -> str:
    """A drawing of a size, in pixels, below a title and a line. `series`: names for a legend."""
    width, height = size
    lines = textwrap.wrap(title, width // 10)
    top = 24 * len(lines) + 34 + 20 * len(series)
    facts = {
        "style": Markup(_style()),
        "width": width + 40,
        "height": top + height + 20,
        "lines": lines,
        "line": line,
        "series": list(zip(series, SHAPES, strict=False)),
        "top": top,
        "drawn": drawn,
    }
    return re.sub(
        "[\ufffe\uffff]", "\ufffd", f"{fragment('figure.svg', facts).strip()}\n"
    )  # XML has no such characters


@cache
def _style() -> str:
    """The style of charts with the colours of a light page: few programs but browsers know variables."""
    colours = dict(re.findall(r"--(\w+): (#\w+)", file("style.css").split("}")[0]))
    return re.sub(r"var\(--(\w+)\)", lambda found: colours[found[1]], file("chart.css"))
