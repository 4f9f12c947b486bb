"""docs/verification-plan.md has the stages of the plan, in their order."""

from __future__ import annotations

from pathlib import Path

from kernelproof.referee.plan import PLAN, PlanStage
from kernelproof.types import Status

PAGE = Path(__file__).parents[2] / "docs" / "verification-plan.md"


def row(stage: PlanStage) -> str:
    return f"| `{stage.name}` | {stage.does} | {', '.join(f'`{status}`' for status in stage.may_end)} |"


def table() -> str:
    return "\n".join(["| stage | what it does | may end as |", "|---|---|---|", *map(row, PLAN)])


def test_the_page_has_the_table_of_the_plan() -> None:
    assert table() in PAGE.read_text(), f"the table should be\n\n{table()}"


def test_no_stage_ends_as_correct_or_before_a_referee_sees_the_candidate() -> None:
    before = {Status.CORRECT, Status.NO_CODE, Status.SYNTAX_ERROR, Status.CONTRACT_ERROR, Status.TRUNCATED}
    assert not before & {status for stage in PLAN for status in stage.may_end}
