"""torch.compile as a baseline on a real GPU: Triton's kernels, compiled and measured in the sandbox."""

from __future__ import annotations

import pytest

from kernelproof.problems import open_suite
from kernelproof.types import Check, CheckOutcome, Status, Verification, VerifySettings
from kernelproof.verifier.engine.engine import Engine

pytestmark = [pytest.mark.gpu, pytest.mark.timeout(1800)]
KINDS = ("compile", "max-autotune")


def reference_against_compiled(engine: Engine, problem_id: str, **changes: object) -> Verification:
    """The problem's own model as the candidate, beside both compiled baselines."""
    problem = open_suite().find(problem_id)
    chosen = {"backend": "cuda", "own_kernel": False, "measure_seconds": 5.0, "baselines": KINDS, **changes}
    source = f"{problem.source}\n\nModelNew = Model\n"
    verdict = engine.verify(source, problem, VerifySettings.model_validate(chosen))
    assert verdict.status is Status.CORRECT, verdict.reason
    return verdict


def checks(verdict: Verification) -> list[Check]:
    return [check for check in verdict.checks if check.name.startswith("baseline: ")]


@pytest.mark.parametrize(
    ("problem_id", "numerics"), [("level1/2", "fp32"), ("level2/3", "fp32"), ("level2/3", "tf32")]
)
def test_both_modes_are_measured_on_a_gpu(engine: Engine, problem_id: str, numerics: str) -> None:
    verdict = reference_against_compiled(engine, problem_id, numerics=numerics)
    for check in checks(verdict):
        assert check.outcome is CheckOutcome.PASS, check.seen
        assert check.figures["compiled"]["graphs"] >= 1
    assert verdict.measurement is not None
    assert [found.baseline for found in verdict.measurement.against] == list(KINDS)


def test_a_second_verification_takes_both_from_the_cache(engine: Engine) -> None:
    first = reference_against_compiled(engine, "level1/2")
    second = reference_against_compiled(engine, "level1/2")
    for before, after in zip(checks(first), checks(second), strict=True):
        assert after.figures["cached"] is True
        assert after.figures["compiled"]["measured"] == before.figures["compiled"]["measured"]
