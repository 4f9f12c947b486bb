"""docs/verification-plan.md has the stages of the plan, and docs/rationale/checks.md what they ask."""

from __future__ import annotations

from pathlib import Path

from kernelproof.types import Status, check_kinds
from kernelproof.types.check_kinds import CheckKind
from kernelproof.verifier.referee.plan import PLAN, PlanStage

DOCS = Path(__file__).parents[2] / "docs"
PAGE = DOCS / "verification-plan.md"


def row(stage: PlanStage) -> str:
    return f"| `{stage.name}` | {stage.does} | {', '.join(f'`{status}`' for status in stage.may_end)} |"


def table() -> str:
    return "\n".join(["| stage | what it does | may end as |", "|---|---|---|", *map(row, PLAN)])


def test_the_page_has_the_table_of_the_plan() -> None:
    assert table() in PAGE.read_text(), f"the table should be\n\n{table()}"


def row_of(check: CheckKind) -> str:
    ends = [f"`{status}`" for status in check.may_end] + [f"flag `{flag}`" for flag in check.flags]
    return f"| `{check.name}` | {check.question} | {', '.join(ends) or 'it is noted'} |"


def table_of_checks() -> str:
    checks = [check for stage in PLAN for check in stage.checks if not check.name.endswith(" again")]
    return "\n".join(["| check | question | otherwise |", "|---|---|---|", *map(row_of, checks)])


def test_the_page_of_checks_has_all_of_the_plan() -> None:
    page = (DOCS / "rationale" / "checks.md").read_text()
    assert table_of_checks() in page, f"the table should be\n\n{table_of_checks()}"


def test_every_check_stands_in_the_plan() -> None:
    kinds = {each for each in vars(check_kinds).values() if isinstance(each, CheckKind)}
    asked = {check for stage in PLAN for check in stage.checks}
    assert kinds == {check for check in asked if not check.name.endswith(" again")}


def test_no_stage_ends_as_correct_or_before_a_referee_sees_the_candidate() -> None:
    before = {Status.CORRECT, Status.NO_CODE, Status.SYNTAX_ERROR, Status.CONTRACT_ERROR, Status.TRUNCATED}
    assert not before & {status for stage in PLAN for status in stage.may_end}
