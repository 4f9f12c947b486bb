"""Where the marks of a forest plot lie, and figures as files."""

from __future__ import annotations

import math
import re
import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest

from kernelproof.db.scores.filters import Filters
from kernelproof.db.store import Store
from kernelproof.report.web.facts import gather
from kernelproof.report.web.figures import NARROW, WIDE, Layout, figures, forest, forest_rows, write_figures
from kernelproof.types import Interval, Measurement, Pace, Status
from tests.db import samples

RUN = samples.settings("vendor:good")


def timed(speedup: float, low: float, high: float, pace: Pace, because: str | None = None) -> Measurement:
    update = {
        "speedup_interval": Interval(low=low, high=high),
        "pace": pace,
        "unresolved_because": because,
    }
    return samples.measurement(speedup).model_copy(update=update)


def add(store: Store, number: int, measured: Measurement | None) -> None:
    """An attempt on a problem; None: a wrong one."""
    of = samples.problem(number)
    status = Status.CORRECT if measured else Status.WRONG_OUTPUT
    attempt = samples.begin(store, of, RUN)
    store.record_response(attempt, samples.response())
    store.record_extraction(attempt, samples.extraction())
    judged = samples.verification(of, status).model_copy(update={"measurement": measured})
    store.record_verification(attempt, judged)
    store.finish_attempt(attempt, status)


@pytest.fixture
def varied(store: Store) -> Store:
    """A problem of each finding, where a speedup may be an end of its interval, and an unsolved one."""
    add(store, 1, timed(2.0, 1.8, 2.3, Pace.FASTER))
    add(store, 2, timed(0.5, 0.5, 0.7, Pace.SLOWER))
    add(store, 3, timed(1.0, 0.99, 1.01, Pace.SAME))
    add(store, 4, timed(1.3, 0.8, 2.1, Pace.UNRESOLVED, "half of its interval is 48 % wide, 15 % is allowed"))
    add(store, 5, None)
    return store


def drawn(store: Store, layout: Layout = WIDE) -> str:
    (found,) = gather(store, Filters()).boards
    return str(forest(forest_rows(found, lambda number: f"#kernel-{number}"), layout, "Speedups of problems"))


def scale(svg: str) -> tuple[float, float]:
    """The place of 1, and pixels for each factor of two, by the labels of the axis."""
    at = {
        text: float(x)
        for x, text in re.findall(r'<text x="([\d.]+)" y="\d+" text-anchor="middle">([\d.]+)×', svg)
    }
    return at["1"], at["2"] - at["1"]


@pytest.mark.parametrize("layout", [WIDE, NARROW], ids=["wide", "narrow"])
def test_a_dot_lies_within_its_interval_on_a_logarithmic_axis(varied: Store, layout: Layout) -> None:
    svg = drawn(varied, layout)
    one, octave = scale(svg)
    (line,) = re.findall(r'class="one" d="M([\d.]+) ', svg)
    assert float(line) == one
    found = re.findall(
        r'whisker (\w+)" d="M([\d.]+) ([\d.]+)H([\d.]+).*?class="dot (\w+)" d="M([\d.]+) ([\d.]+)', svg
    )
    expected = {
        "faster": (1.8, 2.0, 2.3),
        "unresolved": (0.8, 1.3, 2.1),
        "same": (0.99, 1.0, 1.01),
        "slower": (0.5, 0.5, 0.7),
    }
    assert [pace for pace, *_ in found] == list(expected), "the fastest first"
    for pace, low, level, high, dot_pace, dot, dot_level in found:
        places = [one + octave * math.log2(speedup) for speedup in expected[pace]]
        assert [float(low), float(dot), float(high)] == pytest.approx(places, abs=0.2)
        assert float(low) <= float(dot) <= float(high)
        assert (dot_pace, dot_level) == (pace, level)


def test_each_row_says_its_finding_and_why_there_is_none(varied: Store) -> None:
    svg = drawn(varied)
    texts = re.findall(r'<text class="(\w+)" x="\d+" y="[\d.]+">(.*?)</text>', svg)
    assert ("faster", "2.00× [1.80, 2.30] faster") in texts
    assert ("unresolved", "1.30× [0.80, 2.10] unresolved (too wide: ±48 %)") in texts
    assert ("quiet", "not solved") in texts
    assert (
        '<a href="#kernel-1" aria-label="level1/1 softmax: 2.00× [1.80, 2.30] faster, by vendor:good' in svg
    )


@pytest.mark.parametrize(
    "because", ["the baseline's blocks fall into two groups", "the baseline was much slower beside it"]
)
def test_the_longest_findings_fit_beside_the_plot(store: Store, because: str) -> None:
    add(store, 1, timed(0.93, 0.93, 1.01, Pace.UNRESOLVED, because))
    [(x, words)] = re.findall(r'<text class="unresolved" x="(\d+)" y="[\d.]+">(.*?)</text>', drawn(store))
    assert "(" in words and int(x) + 6.3 * len(words) < WIDE.width, "12 px letters are 6.2 px wide"


def test_many_problems_are_one_picture(store: Store) -> None:
    for number in range(1, 101):
        add(store, number, timed(1.5, 1.4, 1.6, Pace.FASTER))
    svg = drawn(store)
    assert svg.count("<title>") == 100, "each has its words"
    height = re.search(r'height="(\d+)"', svg)
    assert height is not None and int(height[1]) < 1100
    assert 'class="name"' not in svg, "no room for words beside the rows"


def test_figures_are_svg_that_needs_nothing_else(varied: Store, tmp_path: Path) -> None:
    paths = write_figures(gather(varied, Filters()).boards, tmp_path / "new" / "folder")
    assert [path.name for path in paths] == ["forest.svg", "forest.png", "fast_p.svg", "fast_p.png"]
    for path in paths:
        if path.suffix == ".png":
            assert path.read_bytes().startswith(b"\x89PNG")
            continue
        svg = path.read_text(encoding="utf-8")
        assert ElementTree.fromstring(svg).tag == "{http://www.w3.org/2000/svg}svg"
        titles = re.findall(r'<text class="title".*?>(.*?)</text>', svg)
        assert (
            " ".join(titles)
            == "vendor:good on kernelproof level 1: 1 of 5 problems faster, 1 slower, 1 unresolved, on Test"
        )
        assert "var(" not in svg and "href" not in svg and "script" not in svg


def test_without_a_converter_there_are_svg_files_and_a_hint(
    varied: Store, workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "vl_convert", None)
    paths = write_figures(gather(varied, Filters()).boards, workspace / "figures")
    assert [path.suffix for path in paths] == [".svg", ".svg"]


def test_hostile_texts_are_text_in_figures(hostile_store: Store) -> None:
    for found in gather(hostile_store, Filters()).boards:
        for svg in figures(found).values():
            tags = {element.tag.rpartition("}")[2] for element in ElementTree.fromstring(svg).iter()}
            assert tags <= {"svg", "style", "rect", "text", "path", "g", "title"}
