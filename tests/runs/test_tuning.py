"""A tuning: parameters of a source, what is tried next, and how many trials are on their way."""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import pytest

from kernelproof.db.store import open_store
from kernelproof.errors import UsageError
from kernelproof.problems import open_suite
from kernelproof.runs.tuning import Grid, Proposer, Tpe, TuningTask, gain, proposer_for, tune
from kernelproof.runs.tuning_template import Template, Values, read_template
from kernelproof.types import Interval, Measurement, Pace, Problem, Status, Verification, VerifySettings
from tests.prompting.material import measurement, verification

CUDA = '''
source = r"""
// tune: TILE = 16 | 32 | 64
// tune where: TILE * TILE * 4 <= 16384
constexpr int TILE = 32;
#define UNROLL 4u  /* tune: UNROLL = 1 | 4 | 8 */
__shared__ float tile[TILE][TILE];  // 32 of 32
"""
module = load_inline("tiled", cuda_sources=source, extra_cuda_cflags=["-O3"])
'''
TRITON = """
# tune: BLOCK = 128, 256, 512
# tune: num_warps = 2, 4, 8
# tune where: BLOCK >= num_warps * 32
def forward(self, x):
    grid = (triton.cdiv(n, 256),)
    kernel[grid](x, y, n, BLOCK=256, num_warps=4)
    return y
"""


def test_declared_parameters_are_put_in_place_and_nothing_else_changes() -> None:
    template = read_template(CUDA)
    assert template.declared
    assert [(p.name, p.value, p.values, p.line) for p in template.parameters] == [
        ("TILE", 32, (16, 32, 64), 5),
        ("UNROLL", 4, (1, 4, 8), 6),
    ]
    assert template.filled(template.original) == CUDA
    expected = CUDA.replace("int TILE = 32", "int TILE = 64").replace("UNROLL 4u", "UNROLL 8u")
    assert template.filled((64, 8)) == expected


def test_python_and_keyword_arguments() -> None:
    template = read_template(TRITON)
    assert template.size == 9 and template.allowed == 8
    filled = template.filled((512, 8))
    assert "BLOCK=512, num_warps=8)" in filled and "cdiv(n, 256)" in filled


def test_every_place_of_a_name_changes_together() -> None:
    source = "# tune: BLOCK = 64 | 128\nBLOCK: tl.constexpr = 64\nflags = ['-DBLOCK=64']\n#define BLOCK 64\n"
    filled = read_template(source).filled((128,))
    assert filled.count("128") == 4 and filled.count("64") == 1


def test_a_commented_out_definition_stays() -> None:
    source = "// tune: A = 1 | 2\n// constexpr int A = 7;\nconstexpr int A = 1;\n"
    assert read_template(source).filled((2,)).endswith("// constexpr int A = 7;\nconstexpr int A = 2;\n")


def test_powers_of_two_are_found_where_nothing_is_declared() -> None:
    source = (
        "constexpr int TILE = 32;\nstatic constexpr unsigned int BLOCK = 4096u;\n#define UNROLL 2\n"
        "constexpr int WARP_SIZE = 32;\nconstexpr int COUNT = 100;\n#define ONE 1\n"
        "constexpr float X = 2.0f;\n    const int threads = 256;\nconst int blocks = 2 * n;\n"
        "constexpr int TWICE = 8;\nnamespace b { constexpr int TWICE = 16; }\n// constexpr int OLD = 8;\n"
    )
    template = read_template(source)
    assert not template.declared
    assert {p.name: p.values for p in template.parameters} == {
        "TILE": (8, 16, 32, 64, 128),
        "BLOCK": (1024, 2048, 4096),
        "UNROLL": (1, 2, 4, 8),
        "threads": (64, 128, 256, 512, 1024),
    }


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("x = 3\n", "no parameter was found"),
        ("// tune: TILE\nconstexpr int TILE = 2;", "cannot be read"),
        ("// tune: TILE = 2 | big\nconstexpr int TILE = 2;", "cannot be read"),
        ("// tune: TILE = 2 | 4\n", "nothing gives it a whole number"),
        ("// tune: A = 2 | 4\n// tune: A = 8\nconstexpr int A = 2;", "declared twice"),
        ("// tune: A = 2 | 4\nconstexpr int A = 2;\nconstexpr int A = 4;", "several values"),
        ("// tune: A = 2 | 4\nconstexpr int A = 2 * N;", "nothing gives it a whole number"),
        ("// tune: A = 2 | 4\n// tune where: A > 2\nconstexpr int A = 2;", "own values do not meet"),
        ("// tune: A = 2 | 9999999999\nconstexpr int A = 2;", "values up to"),
        (f"// tune: A = {'9' * 5000}\nconstexpr int A = 2;", "cannot be read"),
        (f"// tune: A = 2\nconstexpr int A = {'9' * 5000};", "nothing gives it a whole number"),
        ("constexpr int A = 2;\n" * 10_000, "too long"),
        ("".join(f"#define A{i} 2\n" for i in range(17)), "more than the 16 parameters"),
        ("".join(f"// tune: A{i} = 2\n#define A{i} 2\n" for i in range(17)), "more than the 16 parameters"),
        ("// tune: A = 2\nint A = 2;\n" + "// tune where: A > 1\n" * 65, "too many conditions: 65"),
    ],
)
def test_what_makes_no_sense_is_said(source: str, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        read_template(source)


@pytest.mark.parametrize(
    "condition",
    [
        "__import__('os').system('touch /tmp/x') == 0",
        "A.__class__ == 1",
        "A ** 99999999 > 1",
        "(lambda: 1)() == 1",
        "[A][0] == 1",
        "A == 'x'",
        "A == 1.5",
        "A == True",
        "B <= 4",
        "A",
        "A <",
        "A <= 4 or A == 2",
        "(" * 150 + "A" + ")" * 20,
        "A <= " + "1" * 300,
        "A <= 4\0",
    ],
)
def test_a_condition_is_arithmetic_and_nothing_else(condition: str) -> None:
    with pytest.raises(UsageError, match="the condition"):
        read_template(f"// tune: A = 2 | 4\n// tune where: {condition}\nconstexpr int A = 2;\n")


def test_conditions_exclude() -> None:
    where = "# tune where: 16 <= A * B < 64\n# tune where: B % A == 0\n# tune where: 8 // (A - 8) != 0\n"
    template = read_template(f"# tune: A = 2, 4, 8\n# tune: B = 8, 16\n{where}A = 2\nB = 8\n")
    assert list(template.combinations()) == [(2, 8), (2, 16), (4, 8)]


NAMES = ("TILE", "UNROLL", "WIDTH", "STAGES")


def template(count: int, where: str = "") -> Template:
    declared = "".join(f"# tune: {name} = 1, 2, 4, 8, 16, 32\n{name} = 1\n" for name in NAMES[:count])
    return read_template(declared + (f"# tune where: {where}\n" if where else ""))


def hill(values: Values) -> float | None:
    """Best at 8 everywhere; it fails where the product is large."""
    product = 1
    for value in values:
        product *= value
    return None if product > 8192 else -sum(abs(value.bit_length() - 4) for value in values)


def played(proposer: Proposer, score: Callable[[Values], float | None], trials: int) -> list[Values]:
    """Two proposals are always on their way while a third is asked for, as in a tuning."""
    asked: list[Values] = []
    waiting: list[Values] = []
    while len(asked) < trials or waiting:
        while len(waiting) < 3 and len(asked) < trials and (values := proposer.ask()) is not None:
            asked.append(values)
            waiting.append(values)
        if not waiting:
            break
        head = waiting.pop(0)
        proposer.tell(head, score(head))
    return asked


def test_few_combinations_are_all_tried_the_original_first() -> None:
    space = template(2, "TILE * UNROLL <= 64")
    proposer = proposer_for(space, 36, 0)
    assert isinstance(proposer, Grid)
    asked = played(proposer, hill, 100)
    assert asked[0] == (1, 1) and sorted(asked) == sorted(space.combinations())


@pytest.mark.ci
def test_optuna_proposes_nothing_twice_and_nothing_that_is_excluded() -> None:
    space = template(3, "TILE * UNROLL * WIDTH <= 64")
    proposer = proposer_for(space, 40, 0)
    assert isinstance(proposer, Tpe)
    asked = played(proposer, hill, 40)
    assert asked[0] == (1, 1, 1) and len(set(asked)) == 40
    assert all(map(space.allows, asked))


@pytest.mark.ci
def test_optuna_comes_to_an_end_when_all_were_tried() -> None:
    space = template(2, "TILE * UNROLL <= 64")
    asked = played(Tpe(space, 0), hill, 100)
    assert sorted(asked) == sorted(space.combinations())


def test_equal_results_lead_to_equal_proposals_and_another_seed_to_others() -> None:
    runs = [played(Tpe(template(4), seed), hill, 40) for seed in (7, 7, 8)]
    assert runs[0] == runs[1] != runs[2]
    assert played(Tpe(template(4), 7), hill, 25) == runs[0][:25]


def test_optuna_comes_nearer_than_chance() -> None:
    """Of 1296 combinations 60 are tried. 60 random ones hold the optimum in 5 % of the cases."""
    found = [(8, 8, 8, 8) in played(Tpe(template(4), seed), hill, 60) for seed in range(5)]
    assert sum(found) >= 3


SOURCE = """# tune: BLOCK = 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12
BLOCK = 1


class ModelNew:
    pass
"""


class Crowd:
    """An engine whose verifications end when so many are under way, or nobody comes for a while."""

    def __init__(self, most: int) -> None:
        self._changed, self._most = threading.Condition(), most
        self.inside: list[int] = []
        self._now = 0

    def verify(self, source: str, problem: Problem, settings: VerifySettings, *_: Any) -> Verification:
        with self._changed:
            self._now += 1
            self.inside.append(self._now)
            self._changed.notify_all()
            if "BLOCK = 1\n" not in source:
                self._changed.wait_for(lambda: max(self.inside) >= self._most, timeout=5)
            self._now -= 1
        return verification(
            Status.CORRECT, problem_id=problem.id, settings=settings, measurement=measurement(1.0, Pace.SAME)
        )

    def close(self) -> None:
        pass


@pytest.mark.parametrize(("backend", "most"), [("cpp", 3), ("cuda", 8)])
def test_so_many_trials_are_under_way(tmp_path: Path, backend: str, most: int) -> None:
    template, settings = read_template(SOURCE), VerifySettings(backend=backend)
    task = TuningTask(template, open_suite().find("level1/1"), settings, settings)
    engine, proposer = Crowd(most), Grid(template.original, list(template.combinations()))
    with open_store(tmp_path / "attempts.sqlite") as store:
        work: Any = partial(tune, task, proposer, engine, store, trials=12)  # type: ignore[arg-type]
        done = anyio.run(work)
    assert len(done.trials) == 12 and done.trials[0].values == template.original
    assert engine.inside[:2] == [1, 1] and max(engine.inside) == most


def timed(speedup: float, low: float, high: float) -> Measurement:
    interval = {"speedup": speedup, "speedup_interval": Interval(low=low, high=high), "resolution": 0.02}
    return measurement(speedup, Pace.FASTER).model_copy(update=interval)


def test_a_speedup_at_the_low_end_of_its_interval_may_be_as_high_as_that_reaches() -> None:
    """The same kernel twice, on a busy machine: the second was once called surely slower."""
    old, new = timed(0.048, 0.048, 0.079), timed(0.030, 0.030, 0.062)
    loss = gain(new, old)
    assert loss is not None and not loss.shown
    assert loss.interval.low < 1 < loss.interval.high
    other = gain(old, new)
    assert other is not None
    assert other.interval.low == pytest.approx(1 / loss.interval.high)
    assert other.interval.high == pytest.approx(1 / loss.interval.low)


@pytest.mark.parametrize(("low", "shown"), [(1.35, True), (0.9, False)])
def test_a_gain_is_shown_by_what_both_intervals_leave_of_it(low: float, shown: bool) -> None:
    found = gain(timed(1.0, 0.97, 1.03), timed(1.4, low, 3.0))
    assert found is not None
    assert found.shown is shown is (found.interval.low > 1.2)
