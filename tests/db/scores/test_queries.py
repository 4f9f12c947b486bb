"""Answers of the query layer: views, filters, policies, screenings, comparisons."""

from __future__ import annotations

from datetime import date

import pytest

from kernelproof.db.scores.filters import Filters
from kernelproof.db.store import Store
from kernelproof.errors import UsageError
from kernelproof.types import (
    Against,
    Interval,
    Pace,
    Roofline,
    RunSettings,
    Status,
    Verification,
    VerifySettings,
)
from kernelproof.types.measurement import Ceilings
from kernelproof.version import POLICY
from tests.db import samples

P1, P2 = samples.problem(1), samples.problem(2)
RUN = samples.settings()


def run_of(**facts: object) -> RunSettings:
    return RunSettings.model_validate({**RUN.model_dump(), **facts})


def of_policy(verification: Verification, policy: str) -> Verification:
    return verification.model_copy(update={"verifier": f"0.1.0 policy:{policy}"})


def test_files_have_a_table_of_their_own(store: Store) -> None:
    samples.judge(store, P1, RUN, speedup=2.0)
    samples.judge(store, P1, run_of(kind="verify", model="file"), speedup=9.0)
    board = store.scores.leaderboard(views=("model", "problem", "kernel"))
    assert [(s.source, s.model) for s in board.models] == [("model", RUN.model), ("file", "file")]
    assert [(p.source, p.best and p.best.speedup) for p in board.problems] == [("model", 2.0), ("file", 9.0)]
    assert [(k.source, k.kernel.speedup) for k in board.kernels] == [("model", 2.0), ("file", 9.0)]


def test_kernels_come_by_the_lower_end_and_no_more_than_asked(store: Store) -> None:
    numbers = [
        samples.judge(store, P1, RUN, speedup=s, sample=i)[0] for i, s in enumerate((1.5, 3.0, 2.0, 3.0))
    ]
    board = store.scores.leaderboard(views=("kernel",), top=3)
    assert [k.kernel.attempt_id for k in board.kernels] == [numbers[1], numbers[3], numbers[2]]
    assert (board.counts.kernels, board.models, board.problems) == (4, (), ())


def test_runs_templates_and_strategies_are_told_apart(store: Store) -> None:
    for number, (strategy, template) in enumerate(
        (("refine", "basic-v1"), ("beam", "basic-v1"), (None, "basic-v2"))
    ):
        settings = run_of(strategy=strategy, template=template, turns=3, name=f"n{number}")
        samples.judge(store, P1, settings, speedup=2.0)
    board = store.scores.leaderboard(views=("run", "strategy", "template"))
    assert {(s.strategy, s.model) for s in board.strategies} == {
        (strategy, RUN.model) for strategy in ("refine", "beam", "repair")
    }
    assert {s.template: s.samples for s in board.templates} == {"basic-v1": 2, "basic-v2": 1}
    assert {(s.run, s.strategy) for s in board.runs} == {("n0", "refine"), ("n1", "beam"), ("n2", "repair")}
    for filters, count in (
        (Filters(strategy="refine"), 1),
        (Filters(template="basic-v1"), 2),
        (Filters(run="2"), 1),
        (Filters(suite="KernelProof"), 3),
        (Filters(suite="other"), 0),
    ):
        assert sum(s.samples for s in store.scores.leaderboard(filters).models) == count


def test_tags_find_runs_together(store: Store) -> None:
    for name in ("a", "b"):
        samples.judge(store, P1, samples.settings(name=name), speedup=2.0)
    assert store.tags.add([1], ["night", "h200"]) == 2
    assert store.tags.add([1, 2], ["h200"]) == 1
    assert store.tags.of([1, 2]) == {1: ["h200", "night"], 2: ["h200"]}
    tagged = {t: store.scores.leaderboard(Filters(tag=t), views=("run",)).runs for t in ("night", "h200")}
    assert {t: [s.run for s in runs] for t, runs in tagged.items()} == {"night": ["a"], "h200": ["a", "b"]}
    assert store.tags.remove([1, 2], ["h200"]) == 2


def test_fewer_turns_show_what_they_would_have_reached(store: Store) -> None:
    samples.judge(store, P1, RUN, Status.BUILD_ERROR, turn=1)
    samples.judge(store, P1, RUN, speedup=2.0, turn=2)
    counts = {n: store.scores.leaderboard(Filters(turns=n)).models[0].correct.part for n in (1, 2, 3)}
    assert counts == {1: 0, 2: 1, 3: 1}


def test_days_count_from_their_first_moment_to_their_last(store: Store) -> None:
    samples.judge(store, P1, RUN, speedup=2.0)
    today = date.fromisoformat(store.load_attempt(1).created[:10])
    other = date(2020, 1, 1)
    for filters, count in (
        (Filters(since=today, until=today), 1),
        (Filters(until=other), 0),
        (Filters(since=other), 1),
        (Filters(since=date(2999, 1, 1)), 0),
    ):
        assert len(store.scores.leaderboard(filters).models) == count


def test_a_rigor_is_that_of_the_verification(store: Store) -> None:
    attempt, _ = samples.judge(store, P1, RUN, speedup=2.0)
    publish = VerifySettings(backend="cpp", size="small", rigor="publish")
    store.record_verification(attempt, samples.verification(P1, speedup=3.0, verify=publish), "again")
    for rigor, speedup in (("standard", 2.0), ("publish", 3.0)):
        (problem,) = store.scores.leaderboard(Filters.model_validate({"rigor": rigor})).problems
        assert problem.best is not None and (problem.best.speedup, problem.best.rigor) == (speedup, rigor)


def test_only_the_current_policy_ranks_and_the_others_are_stale(store: Store) -> None:
    samples.judge(store, P1, RUN, speedup=2.0)
    old = samples.begin(store, P2, RUN)
    store.record_verification(old, of_policy(samples.verification(P2, speedup=9.0), "old"))
    board = store.scores.leaderboard()
    assert [p.problem_id for p in board.problems] == [P1.id]
    assert (board.counts.stale, board.counts.stale_samples) == (1, 1)
    assert store.scores.stale() == {1: [old]}
    for policy, problems in (("any", {P1.id, P2.id}), ("old", {P2.id}), (POLICY, {P1.id})):
        found = store.scores.leaderboard(Filters(policy=policy)).problems
        assert {p.problem_id for p in found} == problems
    store.record_verification(old, samples.verification(P2, speedup=3.0), "again")
    judged = store.scores.leaderboard()
    assert judged.counts.stale == 0 and store.scores.stale() == {}
    assert [p.best.speedup for p in judged.problems if p.best] == [2.0, 3.0]


def test_a_screening_counts_only_alone_and_its_times_never(store: Store) -> None:
    attempt, _ = samples.judge(store, P1, RUN, speedup=2.0)
    screening = VerifySettings(backend="cpp", size="small", rigor="quick", bar=1.0)
    store.record_verification(attempt, samples.verification(P1, speedup=9.0, verify=screening), "again")
    alone = samples.begin(store, P2, RUN)
    store.record_verification(alone, samples.verification(P2, speedup=9.0, verify=screening))
    board = store.scores.leaderboard()
    assert [p.best and p.best.speedup for p in board.problems] == [2.0, None]
    assert (board.models[0].correct.part, board.models[0].unmeasured) == (2, 1)


def test_torch_compile_and_the_roofline_stand_beside_the_speedup(store: Store) -> None:
    interval = Interval(low=1.1, high=1.3)
    compiled = Against(
        baseline="compile",
        baseline_ms=1.2,
        speedup=1.2,
        speedup_interval=interval,
        pace=Pace.FASTER,
        measured="2026-01-01T00:00:00+00:00",
    )
    ceilings = Ceilings(
        bytes_per_s=1e12, operations_per_s=1e12, cache_bytes=0, aa_spread=0.0, measured="2026-01-01"
    )
    roofline = Roofline(
        **dict.fromkeys(("bytes_read", "bytes_written", "bytes_needed", "operations"), 1),
        **dict.fromkeys(("memory_ms", "compute_ms", "needed_ms"), 0.1),
        fraction=0.4,
        ceilings=ceilings,
    )
    measured = samples.measurement(2.0).model_copy(update={"against": (compiled,), "roofline": roofline})
    judged = samples.verification(P1, speedup=2.0).model_copy(update={"measurement": measured})
    attempt = samples.begin(store, P1, RUN)
    store.record_verification(attempt, judged)
    best = store.scores.leaderboard().problems[0].best
    assert best is not None
    assert (best.compile_speedup, best.compile_interval) == (1.2, interval)
    assert (best.roofline_fraction, best.headroom) == (0.4, 2.5)
    stored = store.load_attempt(attempt).verdict
    assert stored is not None and stored.verification == judged


def test_what_matches_nothing_says_what_there_is(store: Store) -> None:
    samples.judge(store, P1, RUN, speedup=2.0)
    filters = Filters(model="gpt", level=9, backend="cuda", device="H100", since=date(2999, 1, 1))
    hints = " | ".join(store.scores.leaderboard(filters).hints)
    assert "--model gpt matches nothing; there are: replay:a.jsonl" in hints
    assert "--level 9 matches nothing; there are: 1" in hints
    assert "--backend cuda matches nothing; there are: cpp" in hints
    assert "--gpu H100 matches nothing; there are: Test CPU" in hints
    assert "--since 2999-01-01; there are: 20" in hints
    alone = store.scores.leaderboard(Filters(model="replay", numerics="tf32")).hints
    assert "--model replay matches by itself; there are: replay:a.jsonl" in alone
    alone = store.scores.leaderboard(Filters(device="test", numerics="tf32")).hints
    assert "--gpu test matches by itself; there are: Test CPU" in alone
    assert store.scores.leaderboard(Filters(model="replay")).hints == ()


@pytest.fixture
def two(store: Store) -> Store:
    """A is right on 1, 2, 3, 4 and faster on 2 and 3; B on 2, 3 and 5. Only A was asked 6."""
    a, b = samples.settings("openai:a", name="x"), samples.settings("openai:b", name="y")
    speeds = {"a": {1: 2.0, 2: 4.0, 3: 3.0, 4: 1.5}, "b": {2: 2.0, 3: 1.5, 5: 1.1}}
    for number in range(1, 7):
        for name, run in (("a", a), ("b", b)):
            if name == "b" and number == 6:
                continue
            speed = speeds[name].get(number)
            status = Status.CORRECT if speed else Status.WRONG_OUTPUT
            samples.judge(store, samples.problem(number), run, status, speedup=speed)
    return store


def test_two_models_are_paired_by_problem(two: Store) -> None:
    (found,) = two.scores.comparison("openai:a", "openai:b")
    assert (found.kind, len(found.problems), found.only_a, found.only_b) == ("model", 5, 1, 0)
    assert [(p.more_correct, p.faster) for p in found.problems] == [
        ("a", "a"),
        ("tie", "a"),
        ("tie", "a"),
        ("a", "a"),
        ("b", "b"),
    ]
    assert (found.more_correct_a, found.more_correct_b, found.faster_a, found.faster_b) == (2, 1, 4, 1)
    assert (found.correct_a, found.correct_b) == (pytest.approx(0.8), pytest.approx(0.6))
    assert found.correct_p == pytest.approx(1.0)  # 2 against 1
    assert (found.ratio.count, found.ratio.value) == (2, pytest.approx(2.0))
    assert found.ratio_p == pytest.approx(0.5)  # two pairs of one sign: 2 of 4


def test_the_mirror_image_of_a_comparison_has_the_same_tests(two: Store) -> None:
    (found,), (mirrored,) = two.scores.comparison("x", "y"), two.scores.comparison("y", "x")
    assert found.kind == "run"
    assert (found.correct_p, found.ratio_p) == (mirrored.correct_p, mirrored.ratio_p)
    assert found.ratio.value is not None and mirrored.ratio.value == pytest.approx(1 / found.ratio.value)
    assert (found.faster_a, found.faster_b) == (mirrored.faster_b, mirrored.faster_a)


def test_overlapping_intervals_are_a_tie(store: Store) -> None:
    for model, speedup in (("openai:a", 2.0), ("openai:b", 2.01)):
        samples.judge(store, P1, samples.settings(model), speedup=speedup)
    (found,) = store.scores.comparison("openai:a", "openai:b")
    assert [p.faster for p in found.problems] == ["tie"]


def test_names_that_cannot_be_compared(two: Store) -> None:
    for a, b, words in (
        ("openai:a", "nobody", r"there is no .* 'nobody'; there are: .*openai:a"),
        ("openai:a", "x", "not of one kind"),
    ):
        with pytest.raises(UsageError, match=words):
            two.scores.comparison(a, b)
