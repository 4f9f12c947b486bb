"""What a second verification says about the first one: right or wrong, and how its time compares."""

from __future__ import annotations

import pytest

from kernelproof.runs.reproduction import compare
from kernelproof.types import GpuInfo, Interval, Rigor, Status, Verification, VerifySettings
from kernelproof.types import ReproductionFinding as Finding
from tests.db import samples

PROBLEM = samples.problem()


def judged(
    status: Status = Status.CORRECT, speedup: float | None = None, width: float = 0.01
) -> Verification:
    """A verification whose speedup is known to `width` (a fraction, either side)."""
    verification = samples.verification(PROBLEM, status, speedup)
    if verification.measurement is None or speedup is None:
        return verification
    interval = Interval(low=speedup * (1 - width), high=speedup * (1 + width))
    measured = verification.measurement.model_copy(update={"speedup_interval": interval})
    return verification.model_copy(update={"measurement": measured})


@pytest.mark.parametrize(
    "then, now, width, finding",
    [
        (2.0, 2.0, 0.01, Finding.SAME),
        (2.0, 2.02, 0.01, Finding.SAME),
        (2.0, 2.05, 0.01, Finding.FASTER),
        (2.0, 2.05, 0.02, Finding.SAME),
        (2.0, 2.015, 0.0001, Finding.SAME),  # below what a measurement claims
        (2.0, 1.95, 0.0001, Finding.SLOWER),
        (2.0, 2.5, 0.01, Finding.FASTER),
        (2.0, 1.5, 0.01, Finding.SLOWER),
        (2.0, 2.5, 0.5, Finding.AMBIGUOUS),
        (2.0, 20.0, 0.5, Finding.FASTER),
    ],
)
def test_times(then: float, now: float, width: float, finding: Finding) -> None:
    found, reason = compare(judged(speedup=then, width=width), judged(speedup=now, width=width))
    assert found is finding
    assert f"speedup {then:.3f} then, {now:.3f} now" in reason


@pytest.mark.parametrize(
    "now, finding", [(1.9, Finding.SLOWER), (2.5, Finding.AMBIGUOUS), (4.0, Finding.FASTER)]
)
def test_a_speedup_that_is_the_low_end_of_its_interval_is_no_less(now: float, finding: Finding) -> None:
    """As the outer clock bounds it: it may be more, and a lower one now is slower."""
    measured = judged(speedup=2.0).measurement
    assert measured is not None
    bounded = measured.model_copy(update={"speedup_interval": Interval(low=2.0, high=3.0)})
    then = judged(speedup=2.0).model_copy(update={"measurement": bounded})
    assert compare(then, judged(speedup=now))[0] is finding


@pytest.mark.parametrize(
    "then, now, finding",
    [
        (Status.CORRECT, Status.WRONG_OUTPUT, Finding.NOW_WRONG),
        (Status.WRONG_OUTPUT, Status.CORRECT, Finding.NOW_RIGHT),
        (Status.WRONG_OUTPUT, Status.CRASH, Finding.OTHER_FAILURE),
        (Status.CORRECT, Status.INFRASTRUCTURE_ERROR, Finding.NOT_COMPARABLE),
        (Status.CORRECT, Status.BUILT_NOT_RUN, Finding.NOT_COMPARABLE),
        (Status.BUILD_ERROR, Status.BUILD_ERROR, Finding.SAME),
        (Status.CORRECT, Status.CORRECT, Finding.SAME),
    ],
)
def test_statuses(then: Status, now: Status, finding: Finding) -> None:
    assert compare(judged(then), judged(now))[0] is finding


@pytest.mark.parametrize("field", ["cpu", "cores", "torch", "kernelproof"])
def test_times_of_other_environments_are_not_compared(field: str) -> None:
    now = judged(speedup=2.0)
    assert now.environment is not None
    value = 64 if field == "cores" else "another"
    elsewhere = now.model_copy(update={"environment": now.environment.model_copy(update={field: value})})
    finding, reason = compare(judged(speedup=2.0), elsewhere)
    assert finding is Finding.NOT_COMPARABLE and field in reason


@pytest.mark.parametrize(
    "board, now, finding",
    [
        ("A", 2.0, Finding.SAME),
        ("A", 2.06, Finding.SAME),
        ("A", 1.94, Finding.SAME),
        ("A", 2.12, Finding.FASTER),
        ("A", 1.88, Finding.SLOWER),
        ("B", 2.12, Finding.SAME),
        ("B", 1.88, Finding.SAME),
        (None, 1.88, Finding.SAME),
        ("B", 2.3, Finding.FASTER),
        (None, 1.7, Finding.SLOWER),
    ],
)
def test_another_gpu_of_the_model_may_differ_by_more(board: str | None, now: float, finding: Finding) -> None:
    here, there = judged(speedup=2.0, width=0.001), judged(speedup=now, width=0.001)
    found, reason = compare(on_gpu(here, "GPU-1", "A"), on_gpu(there, "GPU-2", board))
    assert found is finding
    assert "on another GPU of this model" in reason
    assert (f"boards: A and {board or 'unknown'}" in reason) is (board != "A")
    assert "another GPU" not in compare(on_gpu(here, "GPU-1", "A"), on_gpu(here, "GPU-1", "A"))[1]


def on_gpu(verification: Verification, uuid: str, board: str | None) -> Verification:
    gpu = GpuInfo(
        index=0,
        name="H200",
        uuid=uuid,
        capability="9.0",
        memory_bytes=1,
        sm_count=132,
        l2_bytes=1,
        board=board,
    )
    assert verification.environment is not None
    environment = verification.environment.model_copy(update={"gpu": gpu})
    return verification.model_copy(update={"environment": environment})


@pytest.mark.parametrize(
    "rules", [{"numerics": "tf32"}, {"purity": "own-compute"}, {"own_kernel": False}, {"backend": "cuda"}]
)
@pytest.mark.parametrize("status", [Status.CORRECT, Status.WRONG_OUTPUT])
def test_verdicts_under_other_rules_are_not_compared(rules: dict[str, object], status: Status) -> None:
    now = judged(status)
    settings = VerifySettings.model_validate(now.settings.model_dump() | rules)
    finding, reason = compare(judged(), now.model_copy(update={"settings": settings}))
    assert finding is Finding.NOT_COMPARABLE
    assert all(name in reason for name in rules)


def test_with_other_threads_times_are_not_compared_and_what_is_wrong_is_wrong() -> None:
    """Else a bundle that claims more threads than there are would never be found wrong."""
    now, wrong = judged(speedup=2.0), judged(Status.WRONG_OUTPUT)
    threads = {"settings": now.settings.model_copy(update={"threads": 9})}
    finding, reason = compare(judged(speedup=2.0), now.model_copy(update=threads))
    assert finding is Finding.NOT_COMPARABLE and "threads 0 then, 9 now" in reason
    assert compare(judged(speedup=2.0), wrong.model_copy(update=threads))[0] is Finding.NOW_WRONG


def test_a_more_rigorous_measurement_is_compared() -> None:
    now = judged(speedup=2.0)
    settings = now.settings.model_copy(update={"rigor": Rigor.PUBLISH, "measure_seconds": 60.0})
    assert compare(judged(speedup=2.0), now.model_copy(update={"settings": settings}))[0] is Finding.SAME


def test_only_same_and_faster_confirm() -> None:
    assert [finding for finding in Finding if finding.confirms] == [Finding.SAME, Finding.FASTER]
