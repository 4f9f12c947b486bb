"""The forest plot and the curve of fast_p as files for a paper: SVG, and PNG where vl-convert is installed."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Sequence
from functools import cache
from pathlib import Path

from markupsafe import Markup

from kernelproof.db.scores.filters import Filters
from kernelproof.db.store import Store
from kernelproof.errors import writing
from kernelproof.report.web.charts import SHAPES, charted, fast_p_curves
from kernelproof.report.web.facts import Board, gather
from kernelproof.report.web.forest import WIDE, forest, forest_rows
from kernelproof.report.web.rendering import file, fragment
from kernelproof.report.web.summary import closing_line, headline

SCALE = 2.0
"""Pixels of a PNG for each of an SVG's."""


def write_figures(store: Store, filters: Filters, folder: Path, title: str | None = None) -> list[Path]:
    """Writes `forest` and `fast_p` into a folder, which is made where there is none, as .svg, and as .png
    where vl-convert is installed; with a number where there are several boards. Their paths. `title`: None:
    what the data say.

    Raises UsageError when no finished attempt passes the filters, MachineError where they cannot be written.
    """
    boards = gather(store, filters).boards
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
    found = {
        "forest": _figure(
            title, closing_line(board), forest(forest_rows(board, lambda _: None), WIDE, title), ()
        )
    }
    curves = fast_p_curves(board, models)
    if curves is not None:
        said = "Samples that are correct and faster than p"
        found["fast_p"] = _figure(title, said, curves.drawn(said), [scores.model for scores in models])
    return found


def as_png(svg: str) -> bytes | None:
    """The figure as PNG; None where vl-convert is missing."""
    try:
        import vl_convert
    except ImportError:
        return None
    return bytes(vl_convert.svg_to_png(svg, scale=SCALE))


def _figure(title: str, line: str, drawn: Markup, series: Sequence[str]) -> str:
    """A drawing below a title and a line. `series`: names for a legend."""
    size = re.search(r'width="(\d+)" height="(\d+)"', drawn)
    assert size is not None
    width, height = int(size[1]), int(size[2])
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
    return f"{fragment('figure.svg', facts).strip()}\n"


@cache
def _style() -> str:
    """The style of charts with the colours of a light page: programs other than browsers know no variables."""
    colours = dict(re.findall(r"--(\w+): (#\w+)", file("style.css").split("}")[0]))
    return re.sub(r"var\(--(\w+)\)", lambda found: colours[found[1]], file("chart.css"))
