"""Every candidate of the corpus gets the status it deserves, from the check that should see it."""

from __future__ import annotations

from collections import Counter

import pytest

from pipeline.referee.request import VerifyRequest
from tests.referee.corpus import Member, failed_check, members
from tests.referee.court import Court


@pytest.mark.parametrize("member", members(), ids=lambda member: member.id)
def test_gets_what_it_deserves(member: Member, court: Court, confusion: Counter[tuple[str, str]]) -> None:
    verdict = court.judge(
        VerifyRequest(problem=member.problem, source=member.source, settings=member.settings, device="cpu")
    )
    confusion[member.kind, verdict.status.value] += 1
    assert verdict.status in member.expected, f"{verdict.reason}\n{verdict.details}"
    if member.caught_by is not None:
        assert (failed_check(verdict) or "").startswith(member.caught_by), verdict.reason
    assert not court.left_over()
