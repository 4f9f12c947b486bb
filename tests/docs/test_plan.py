"""The plan of a verification: every check is in it, and no stage ends what it cannot end."""

from __future__ import annotations

from kernelproof.types import Status, check_kinds
from kernelproof.types.check_kinds import CheckKind
from kernelproof.verifier.referee.plan import PLAN


def test_every_check_stands_in_the_plan() -> None:
    kinds = {each for each in vars(check_kinds).values() if isinstance(each, CheckKind)}
    asked = {check for stage in PLAN for check in stage.checks}
    assert kinds == {check for check in asked if not check.name.endswith(" again")}


def test_no_stage_ends_as_correct_or_before_a_referee_sees_the_candidate() -> None:
    before = {Status.CORRECT, Status.NO_CODE, Status.SYNTAX_ERROR, Status.CONTRACT_ERROR, Status.TRUNCATED}
    assert not before & {status for stage in PLAN for status in stage.may_end}
