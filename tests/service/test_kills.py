"""Daemons of every kind are killed while they work: nothing is lost, nothing is judged twice in the books."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.program import Program
from tests.service.killing import KINDS, killing


@pytest.mark.ci
@pytest.mark.timeout(1200)
def test_nothing_is_lost_or_judged_twice_while_daemons_are_killed(program: Program, suite: Path) -> None:
    found = killing(program, suite, kills=21, seed=1)
    assert found.is_sound, found
    assert found.kills == dict.fromkeys(KINDS, 7)
    assert found.changes["losses"] >= 7, "no work was under way when its daemon was killed"
    assert found.stopped == 1, "no daemon came back after its lease was lost"


@pytest.mark.slow
@pytest.mark.timeout(7200)
def test_the_same_with_three_hundred_kills(program: Program, suite: Path) -> None:
    found = killing(program, suite, kills=300, seed=2)
    assert found.is_sound, found
