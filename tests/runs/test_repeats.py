"""No program of a sample is verified twice, also where answers of one round hold the same one."""

from __future__ import annotations

from pathlib import Path

import pytest

from kernelproof.types import Status
from tests.runs.racing import Searching

BEAM = {"strategy": "beam", "race": False}
"""Turns 1 to 3 are one round, and 4 to 6 another."""
FOUR = {2: 1, 4: 3, 6: 5}
"""Turn 2 answers as turn 1 of its round, turn 4 as one before, turn 6 as turn 5 of its round."""
SPEEDUPS = [1.0, 9.0, 2.0, 9.0, 3.0, 9.0]


@pytest.mark.parametrize("wrong", [False, True])
def test_equal_programs_of_a_round_share_one_verification(tmp_path: Path, wrong: bool) -> None:
    search = Searching(tmp_path, FOUR, **BEAM)
    speedups = [None, *SPEEDUPS[1:]] if wrong else SPEEDUPS
    _, verified = search.run(speedups, speedups)
    assert sorted(number for number, _ in verified) == [1, 3, 5]
    attempts = search.attempts
    kept = [(each.verifications[0], each.status) for each in attempts]
    assert [each.verification for each, _ in kept] == [kept[i][0].verification for i in (0, 0, 2, 2, 4, 4)]
    assert sum(each.reused_from is None for each, _ in kept) == 3
    first = Status.WRONG_OUTPUT if wrong else Status.CORRECT
    assert [status for _, status in kept] == [first] * 2 + [Status.CORRECT] * 4
    assert search.run(speedups, speedups)[1] == []


@pytest.mark.few(1)
@pytest.mark.parametrize("dies_at", range(1, 4))
def test_killed_at_any_verification_equal_programs_are_still_verified_once(
    tmp_path: Path, dies_at: int
) -> None:
    search = Searching(tmp_path, FOUR, **BEAM)
    _, before = search.run(SPEEDUPS, SPEEDUPS, dies_at=dies_at)
    _, after = search.run(SPEEDUPS, SPEEDUPS)
    assert sorted(number for number, _ in (*before, *after)) == [1, 3, 5]
    assert [attempt.status for attempt in search.attempts] == [Status.CORRECT] * 6
    assert sorted(search.model.asked) == [1, 2, 3, 4, 5, 6]
