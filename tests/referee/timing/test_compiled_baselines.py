"""Baselines under torch.compile: measured, kept, measured again when the machine changed, or refused with
a reason. Inductor compiles C++ in the sandbox here; tests/gpu has the twin with Triton."""

from __future__ import annotations

import json
import math
import shutil
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from kernelproof.problems import open_suite
from kernelproof.types import (
    Against,
    Check,
    CheckOutcome,
    Interval,
    Measurement,
    Pace,
    Problem,
    Rigor,
    Status,
    Verification,
    VerifySettings,
)
from kernelproof.verifier.build import Toolchain, learn_toolchain
from kernelproof.verifier.contestant.loop import OutputMeta
from kernelproof.verifier.referee.correctness.oracle import Oracle
from kernelproof.verifier.referee.inputs.problem import LoadedProblem
from kernelproof.verifier.referee.timing.compiled_baselines import (
    Compiled,
    CompiledBaselines,
    ProcessSetup,
    same_eager,
    through_eager,
)
from kernelproof.verifier.referee.timing.rounds import Timed
from kernelproof.verifier.referee.timing.timed_outputs import Subject
from kernelproof.verifier.workers.client import Contestant
from kernelproof.verifier.workers.shared_memory import SharedMemory
from tests.referee.court import Court
from tests.referee.problems import text, written

CPU = torch.device("cpu")
LONG = pytest.mark.timeout(1800)
"""A compiler on a machine under load takes its time."""
ratios = st.floats(0.01, 100)
widths = st.floats(0, 0.5)


def interval(ratio: float, below: float, above: float) -> Interval:
    return Interval(low=ratio * math.exp(-below), high=ratio * math.exp(above))


def measured(ratio: float, *, below: float = 0.01, above: float = 0.01, eager_ms: float = 1.0) -> Measurement:
    """A candidate's measurement with this speedup."""
    return Measurement(
        candidate_ms=eager_ms / ratio,
        baseline_ms=eager_ms,
        speedup=ratio,
        speedup_interval=interval(ratio, below, above),
        pace=Pace.UNRESOLVED,
        resolution=0.01,
        aa_spread=0.002,
        host_ms=eager_ms / ratio,
        overhead_ms=0.0,
        flush_bytes=0,
        slots=1,
    )


def compiled(ratio: float, *, below: float = 0.01, above: float = 0.01, eager_ms: float = 1.0) -> Compiled:
    """A compiled baseline that is `ratio` times as fast as the eager one."""
    return Compiled(
        speedup=ratio,
        speedup_interval=interval(ratio, below, above),
        eager_ms=eager_ms,
        aa_spread=0.002,
        resolution=0.01,
        graphs=1,
        graph_breaks=0,
        compile_seconds=1.0,
        measured="2026-01-01T00:00:00+00:00",
        sought=0.01,
        most_seconds=10.0,
    )


@given(ratios, ratios, widths, widths, widths, widths)
def test_the_candidate_against_compiled_is_the_ratio_of_both_against_eager(
    mine: float, other: float, below: float, above: float, other_below: float, other_above: float
) -> None:
    first = measured(mine, below=below, above=above)
    second = compiled(other, below=other_below, above=other_above)
    found = through_eager("compile", first, second, Rigor.QUICK)
    assert found.speedup == pytest.approx(mine / other)
    assert found.baseline_ms / found.speedup == pytest.approx(first.candidate_ms)
    down = math.log(found.speedup / found.speedup_interval.low)
    up = math.log(found.speedup_interval.high / found.speedup)
    assert down == pytest.approx(math.hypot(below, other_above), abs=1e-9)
    assert up == pytest.approx(math.hypot(above, other_below), abs=1e-9)


@given(ratios, ratios, st.floats(0.5, 2), st.floats(0.5, 2))
def test_what_eager_moved_meanwhile_widens_the_interval(
    mine: float, other: float, then_ms: float, now_ms: float
) -> None:
    still = through_eager("compile", measured(mine), compiled(other), Rigor.QUICK)
    today, then = measured(mine, eager_ms=now_ms), compiled(other, eager_ms=then_ms)
    moved = through_eager("compile", today, then, Rigor.QUICK)
    assert moved.speedup == pytest.approx(still.speedup)
    assert moved.speedup_interval.low <= still.speedup_interval.low * (1 + 1e-12)
    assert moved.speedup_interval.high >= still.speedup_interval.high * (1 - 1e-12)
    half = math.log(moved.speedup_interval.high / moved.speedup_interval.low) / 2
    assert half >= abs(math.log(now_ms / then_ms)) * (1 - 1e-9)


@pytest.mark.parametrize(("now_ms", "same"), [(1.0, True), (1.025, True), (0.975, True), (1.05, False)])
def test_eager_is_the_same_within_three_per_cent(now_ms: float, same: bool) -> None:
    assert same_eager(measured(2.0, eager_ms=now_ms), compiled(1.5)) is same


def test_eager_is_the_same_within_three_times_its_own_spread() -> None:
    noisy = measured(2.0, eager_ms=1.1).model_copy(update={"aa_spread": 0.04})
    assert same_eager(noisy, compiled(1.5))
    assert not same_eager(noisy, compiled(1.5, eager_ms=0.9))


def test_faster_than_eager_may_be_slower_than_compiled() -> None:
    assert through_eager("compile", measured(1.5), compiled(2.0), Rigor.QUICK).pace is Pace.SLOWER
    assert through_eager("compile", measured(1.5), compiled(1.1), Rigor.QUICK).pace is Pace.FASTER


def test_what_its_rounds_give_to_doubt_leaves_it_unresolved_against_compiled_too() -> None:
    doubt = "the baseline's blocks fall into two groups"
    found = through_eager("compile", measured(3.0), compiled(1.1), Rigor.QUICK, [doubt])
    assert (found.pace, found.unresolved_because) == (Pace.UNRESOLVED, doubt)


def test_an_interval_that_is_too_wide_for_the_rigor_is_unresolved_unless_it_is_surely_slower() -> None:
    wide = measured(3.0, below=0.2, above=0.2)
    assert through_eager("compile", wide, compiled(1.1), Rigor.QUICK).pace is Pace.FASTER
    found = through_eager("compile", wide, compiled(1.1), Rigor.STANDARD)
    assert found.pace is Pace.UNRESOLVED and "half of its interval is 20" in (found.unresolved_because or "")
    assert through_eager("compile", wide, compiled(9.0), Rigor.STANDARD).pace is Pace.SLOWER


def verdict_on(court: Court, problem: Problem, *kinds: str) -> Verification:
    """The verdict on a problem's own model as the candidate."""
    source = f"{problem.source}\n\nModelNew = Model\n"
    verdict = court.verdict(
        source, problem, threads=0, measure=True, measure_seconds=2.0, rigor="quick", baselines=kinds
    )
    assert verdict.status is Status.CORRECT, f"{verdict.reason}\n{verdict.details}"
    return verdict


def check_of(verdict: Verification, kind: str) -> Check:
    (found,) = [check for check in verdict.checks if check.name == f"baseline: {kind}"]
    return found


def never(_: Contestant) -> Timed:
    raise AssertionError("nothing was to be measured")


@dataclass
class Measured:
    """A problem whose compiled baselines were measured by a verification, and the cache they are in."""

    problem_id: str
    cache: Path
    toolchain: Toolchain
    verdict: Verification

    def again(
        self, kind: str, measurement: Measurement, settings: VerifySettings | None = None
    ) -> tuple[Against | None, Check]:
        """Asks for a baseline where there is no compiler: only the cache can answer."""
        loaded = LoadedProblem(open_suite().find(self.problem_id), "small")
        chosen = settings or self.verdict.settings
        oracle = Oracle(loaded, loaded.construct(0, CPU), OutputMeta(None, []), CPU, "fp32")
        subject = Subject(oracle, (), chosen, CPU, lambda: 0, ())
        bare = self.toolchain.model_copy(update={"cxx": None})
        setup = ProcessSetup(subject, SharedMemory(CPU), {}, 0, bare)
        assert self.verdict.environment is not None
        return CompiledBaselines(self.cache, self.verdict.environment, setup, never).against(
            kind, measurement
        )


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("cache")


@pytest.fixture(scope="module")
def court(cache: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Court]:
    """A referee of its own: a problem that imports torch's compiler leaves its folders in TMPDIR."""
    scratch = tmp_path_factory.mktemp("scratch")
    scratch.chmod(0o755)
    with Court(cache, scratch) as made:
        yield made


@pytest.fixture(scope="module")
def linear(cache: Path, court: Court) -> Measured:
    """A linear layer and more, against torch.compile."""
    verdict = verdict_on(court, open_suite().find("level2/3"), "compile")
    assert not court.left_over()
    return Measured("level2/3", cache, learn_toolchain(cache), verdict)


def assert_measured(verdict: Verification, kind: str) -> None:
    measurement, check = verdict.measurement, check_of(verdict, kind)
    assert check.outcome is CheckOutcome.PASS, check.seen
    assert measurement is not None
    (found,) = [found for found in measurement.against if found.baseline == kind]
    assert check.figures["cached"] is False
    assert check.figures["compiled"]["graphs"] >= 1
    assert found.speedup_interval.low <= found.speedup <= found.speedup_interval.high
    ratio = measurement.baseline_ms / check.figures["compiled"]["speedup"]
    assert found.baseline_ms == pytest.approx(ratio)


@pytest.mark.slow
@LONG
def test_a_compiled_model_is_measured_beside_the_eager_one(linear: Measured) -> None:
    assert_measured(linear.verdict, "compile")


@LONG
@pytest.mark.slow
@pytest.mark.parametrize("problem_id", ["level1/9", "level3/4"])
def test_both_modes_are_measured(court: Court, problem_id: str) -> None:
    verdict = verdict_on(court, open_suite().find(problem_id), "compile", "max-autotune")
    for kind in ("compile", "max-autotune"):
        assert_measured(verdict, kind)


@pytest.mark.slow
@LONG
def test_what_was_measured_is_kept_until_eager_changes(linear: Measured) -> None:
    check = check_of(linear.verdict, "compile")
    record = Compiled.model_validate(check.figures["compiled"])
    today = measured(2.0, below=0.5, above=0.5, eager_ms=record.eager_ms)
    found, again = linear.again("compile", today)
    assert found is not None
    assert (again.outcome, again.figures["cached"]) == (CheckOutcome.PASS, True)
    assert found.measured == record.measured
    assert found.speedup == pytest.approx(2.0 / record.speedup)

    changed = math.exp(4 * max(0.03, record.aa_spread))
    other = today.model_copy(update={"baseline_ms": record.eager_ms * changed})
    found, again = linear.again("compile", other)
    assert found is None
    assert "No C++ compiler" in again.seen


@pytest.mark.slow
@LONG
@pytest.mark.parametrize("change", [{"threads": 1}, {"numerics": "tf32"}, {"backend": "cuda"}])
def test_nothing_measured_otherwise_is_used(linear: Measured, change: dict[str, object]) -> None:
    record = Compiled.model_validate(check_of(linear.verdict, "compile").figures["compiled"])
    today = measured(2.0, below=0.5, above=0.5, eager_ms=record.eager_ms)
    settings = linear.verdict.settings.model_copy(update=change)
    found, check = linear.again("compile", today, settings)
    assert found is None
    assert check.outcome is CheckOutcome.NOT_APPLICABLE


@pytest.mark.slow
@LONG
def test_a_ratio_too_uncertain_for_today_is_not_used(linear: Measured) -> None:
    record = Compiled.model_validate(check_of(linear.verdict, "compile").figures["compiled"])
    today = measured(2.0, below=0.0, above=0.0, eager_ms=record.eager_ms)
    sharp = linear.verdict.settings.model_copy(update={"target_half_width": 1e-6})
    assert linear.again("compile", today, sharp)[0] is None


@pytest.mark.slow
@LONG
def test_a_wide_ratio_is_used_where_measuring_as_hard_gave_it(linear: Measured, tmp_path: Path) -> None:
    copied = replace(linear, cache=tmp_path)
    shutil.copytree(linear.cache / "baselines", tmp_path / "baselines")
    for path in (tmp_path / "baselines").glob("*.json"):
        kept = json.loads(path.read_text())
        kept["found"]["speedup_interval"] = {"low": 0.5, "high": 50.0}
        path.write_text(json.dumps(kept))
    record = Compiled.model_validate(check_of(linear.verdict, "compile").figures["compiled"])
    today = measured(2.0, below=0.0, above=0.0, eager_ms=record.eager_ms)
    assert copied.again("compile", today)[0] is not None
    for more in ({"target_half_width": 0.01}, {"measure_seconds": 9.0}):
        harder = linear.verdict.settings.model_copy(update=more)
        assert copied.again("compile", today, harder)[0] is None


def refused(court: Court, place: Path, *, body: str, decorator: str = "") -> Check:
    """The check of a problem that torch.compile is no baseline for."""
    source = text(body, "torch.randn(64, 64)", "self.calls = 0")
    source = source.replace("    def forward", f"    {decorator}\n    def forward")
    verdict = verdict_on(court, written(place, source), "compile")
    check = check_of(verdict, "compile")
    assert check.outcome is CheckOutcome.NOT_APPLICABLE
    assert verdict.measurement is not None and verdict.measurement.against == ()
    return check


@pytest.mark.slow
@LONG
def test_nothing_to_compile_is_no_baseline_and_is_not_tried_again(court: Court, tmp_path: Path) -> None:
    excluded = {"decorator": "@torch.compiler.disable", "body": "return torch.relu(x)"}
    check = refused(court, tmp_path, **excluded)
    assert "nothing to compile" in check.seen
    assert refused(court, tmp_path, **excluded).figures["measured"] == check.figures["measured"]


@LONG
@pytest.mark.slow
def test_a_model_that_is_wrong_when_compiled_is_no_baseline(court: Court, tmp_path: Path) -> None:
    body = "return torch.relu(x) + (1.0 if torch.compiler.is_compiling() else 0.0)"
    assert "computes something else" in refused(court, tmp_path, body=body).seen


@LONG
@pytest.mark.slow
def test_a_model_that_is_compiled_at_every_call_is_no_baseline(court: Court, tmp_path: Path) -> None:
    body = "self.calls += 1\n        return torch.relu(x) * (self.calls / self.calls)"
    assert "ecompile" in refused(court, tmp_path, body=body).seen
