"""The test bed for strategies: its synthetic model, its searches at equal budget, and its comparison."""

from __future__ import annotations

import itertools
import json
import math
import statistics
import subprocess
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from xml.etree import ElementTree

import pytest

from benchmarks.search import plotting
from benchmarks.search.comparing import Table, marks, mean, ratio, record
from benchmarks.search.landscape import LEVELS, points
from benchmarks.search.landscapes import drawn
from benchmarks.search.proposer import MODELS, STRONG, Asked, Model, Program, Proposer
from benchmarks.search.searching import FIRST_QUESTION, Budget, search
from kernelproof.runs.strategies import Proposal, Result, Task, find_strategy
from kernelproof.types import Status

MANY = 3_000


def answers(model: Model, parent: Program | None = None, **facts: object) -> list[Program]:
    proposer = Proposer(model, "a problem")
    return [proposer.answer(Asked(n, parent, **facts)) for n in range(MANY)]  # type: ignore[arg-type]


def near(share: float) -> object:
    """Within four standard errors of a share of MANY."""
    return pytest.approx(share, abs=4 * math.sqrt(share * (1 - share) / MANY) + 1e-12)


@pytest.mark.parametrize("model", MODELS.values(), ids=list(MODELS))
def test_first_programs_fail_as_real_ones_did(model: Model) -> None:
    ended = Counter(each.mistake or Status.CORRECT for each in answers(model))
    assert set(ended) == set(model.seen)
    for status, count in model.seen.items():
        assert ended[status] / MANY == near(count / sum(model.seen.values()))


def expected(name: str, seed: int, questions: int) -> float:
    """The mean of the log gain of the best of so many independent first programs, exactly."""
    landscape = drawn(name, seed)
    odds = [[STRONG.plain**level for level in range(count)] for count in LEVELS]
    mass: Counter[float] = Counter()
    for point in points():
        chance = STRONG.correct
        for levels, level in zip(odds, point, strict=True):
            chance *= levels[level] / sum(levels)
        right = landscape.fault(point) is None
        mass[max(0.0, math.log(landscape.speedup(point))) if right else 0.0] += chance
    mass[0.0] += 1 - STRONG.correct
    below = list(itertools.accumulate(mass[value] for value in sorted(mass)))
    whole = [total**questions for total in below]
    steps = (after - before for before, after in zip([0.0, *whole], whole, strict=False))
    return sum(value * step for value, step in zip(sorted(mass), steps, strict=True))


@pytest.mark.ci
@pytest.mark.parametrize("name", ["rugged", pytest.param("traps", marks=pytest.mark.ci)])
def test_sample_finds_what_the_best_of_independent_answers_is_expected_to_be(name: str) -> None:
    budget, sample = Budget(8), find_strategy("sample")
    off = [
        math.log(search(sample, name, STRONG, seed, budget, noise=0.0).gain()) - expected(name, seed, 8)
        for seed in range(50)
    ]
    error = statistics.stdev(off) / math.sqrt(len(off))
    assert error < 0.06 and abs(statistics.mean(off)) < 4 * error


class Threes:
    """Three proposals a round, on the first turn, and on the second beside it."""

    def __init__(self, task: Task) -> None:
        self._next: Sequence[Proposal] = (Proposal(),) * 3

    def ask(self) -> Sequence[Proposal]:
        return self._next

    def tell(self, results: Sequence[Result]) -> None:
        self._next = (Proposal(parent=1),) * 3


def test_every_strategy_gets_the_same_number_of_questions() -> None:
    found = {
        name: search(strategy, "smooth", STRONG, 1, Budget(32))
        for name, strategy in {"sample": find_strategy("sample"), "threes": Threes}.items()
    }
    assert [len(each.tries) for each in found.values()] == [32, 32]
    assert found["sample"].ended == 1 and found["threes"].ended is None
    assert found["sample"].tries[0] == found["threes"].tries[0]
    assert len(search(Threes, "smooth", STRONG, 1, Budget(32, turns=4)).tries) == 32


def test_no_search_spends_more_tokens_than_it_may() -> None:
    budget = Budget(32, tokens=10 * FIRST_QUESTION)
    assert len(search(find_strategy("sample"), "smooth", STRONG, 1, budget).tries) == 10
    threes = search(Threes, "smooth", STRONG, 1, budget)
    assert 7 <= len(threes.tries) < 10 and threes.tokens <= 10 * FIRST_QUESTION


def test_a_ratio_is_paired_and_its_interval_holds_it() -> None:
    theirs = [1.0, 1.5, 3.0, 2.0] * 10
    double = ratio([2 * each for each in theirs], theirs)
    assert (double.ratio, double.low, double.high) == pytest.approx((2.0, 2.0, 2.0))
    assert (double.won, double.lost, double.verdict) == (40, 0, "better")
    same = ratio(theirs, theirs)
    assert (same.low, same.high, same.verdict) == (1.0, 1.0, "")
    mixed = ratio([1.0, 1.3, 3.1, 2.3] * 10, theirs)
    assert mixed.low < mixed.ratio < mixed.high and (mixed.won, mixed.lost) == (20, 10)
    assert ratio(theirs, [2 * each for each in theirs]).verdict == "worse"
    with pytest.raises(ValueError):
        ratio([1.0], theirs)
    assert marks(32) == (1, 2, 4, 8, 16, 32) and marks(20) == (1, 2, 4, 8, 16, 20) and marks(1) == (1,)


def run(*options: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "benchmarks.search", *options]
    return subprocess.run(command, capture_output=True, text=True, cwd=Path(__file__).parents[2])


@pytest.mark.ci
def test_the_command_prints_tables_and_writes_every_search(tmp_path: Path) -> None:
    file = tmp_path / "new" / "search.json"
    options = ("--seeds", "3", "--budget", "5", "--landscapes", "smooth", "needle", "--json", str(file))
    done = run(*options, "--chance", "repair=0.9", "--plots", str(tmp_path))
    assert done.returncode == 0, done.stderr
    assert "smooth" in done.stdout and "refine" in done.stdout and "better" in done.stdout
    written = json.loads(file.read_text())
    assert written["model"]["repair"] == 0.9 and len(written["records"]) == 2 * 2 * 3
    assert {len(each["curve"]) for each in written["records"]} == {4}
    again = run(*options, "--chance", "repair=0.9", "--plots", str(tmp_path))
    assert again.stdout == done.stdout
    shown = {
        "search-curves-strong": {"sample", "refine", "questions", "4", "5"},
        "search-landscapes-strong": {"refine", "smooth", "needle", "all", "gain over that of sample"},
    }
    for name, words in shown.items():
        plot = ElementTree.parse(tmp_path / f"{name}.svg").getroot()
        assert plot.attrib["aria-label"].endswith("3 seeds of each of 2 landscapes, model strong")
        assert words <= {each.text for each in plot.iter("{http://www.w3.org/2000/svg}text")}


def test_plots_hold_the_figures_of_the_tables() -> None:
    found = Table(
        [
            record("smooth", name, seed, search(find_strategy(name), "smooth", STRONG, seed, Budget(6)), 6)
            for name in ("sample", "refine", "beam")
            for seed in range(4)
        ]
    )
    drawn = {each["strategy"]: each for each in plotting.by_landscape(found, "sample")["data"]["values"]}
    assert drawn.keys() == {"refine", "beam"}
    ratios = {name: found.overall(name, "sample") for name in drawn}
    assert {name: (each["low"], each["value"], each["high"]) for name, each in drawn.items()} == {
        name: (each.low, each.ratio, each.high) for name, each in ratios.items()
    }
    last = [each for each in plotting.curves(found, 6)["data"]["values"] if each["questions"] == 6]
    gains = [mean([one.gain for one in found.of("smooth", each["strategy"])]) for each in last]
    assert [each["value"] for each in last] == pytest.approx(gains)
