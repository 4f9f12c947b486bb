"""The cases of tests/referee/test_used_baselines.py as whole verdicts: one referee, one after the other."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from kernelproof.types import Rigor, Status, VerifySettings
from kernelproof.types.verification import VerifyRequest
from tests.referee.court import Court
from tests.referee.test_used_baselines import LEAVES_A_TRAP, problem

pytestmark = pytest.mark.gpu


@pytest.fixture
def court(cache: Path, tmp_path: Path) -> Iterator[Court]:
    tmp_path.chmod(0o755)
    with Court(cache, tmp_path) as made:
        yield made


def of_itself(court: Court, name: str, added: str = "") -> None:
    """The reference as its own candidate, with more to follow. What is `added` is in the problem only."""
    settings = VerifySettings(backend="cuda", size="full", own_kernel=False, rigor=Rigor.QUICK)
    source = f"{problem(name).source}\n\nModelNew = Model\n"
    request = VerifyRequest(problem=problem(name, added), source=source, settings=settings, device="cuda:0")
    verdict = court.judge(request, ahead=True)
    assert verdict.status is Status.CORRECT, verdict.reason
    found = verdict.measurement
    assert found is not None, verdict
    assert found.speedup_interval.low < 1.01 and found.speedup_interval.high > 0.99, found
    assert verdict.kernels is not None and verdict.kernels.replaced_share is not None, verdict.kernels


def test_one_after_the_other(court: Court) -> None:
    for name in ("level1/1", "level2/3", "level3/2", "level1/7", "level1/1"):
        of_itself(court, name)


def test_what_a_problem_leaves_there_is_not_the_next_ones_fault(court: Court) -> None:
    for added in ("", LEAVES_A_TRAP, "", ""):
        of_itself(court, "level1/1", added)
