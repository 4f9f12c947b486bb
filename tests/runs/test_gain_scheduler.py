"""Questions divided over problems: the next one goes where most is expected, also after an interruption."""

from __future__ import annotations

import math
from collections import Counter
from functools import partial
from pathlib import Path

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernelproof.runs.gain_scheduler import GainScheduler, expected_gain
from kernelproof.runs.limits import Limits
from tests.db import samples
from tests.runs.racing import Searching

NEAR = [9.0] * 12
"""Of a roofline of 10."""


def test_a_place_goes_to_the_highest_gain_once_all_samples_told_theirs() -> None:
    went: list[str] = []

    async def sample(scheduler: GainScheduler, name: str, gains: list[float], later: float) -> None:
        await anyio.sleep(later)
        for gain in gains:
            async with scheduler.place(name, gain):
                went.append(name)
                await anyio.sleep(0)
        scheduler.leave(name)

    async def main() -> None:
        scheduler = GainScheduler(1)
        for name in "abc":
            scheduler.expect(name)
        async with anyio.create_task_group() as group:
            group.start_soon(partial(sample, scheduler, "a", [3.0, 1.0], 0.0))
            group.start_soon(partial(sample, scheduler, "b", [9.0, 2.0, 2.0], 0.05))
            group.start_soon(partial(sample, scheduler, "c", [], 0.1))

    anyio.run(main)
    assert went == ["b", "a", "b", "b", "a"]


def test_the_problem_with_more_room_gets_more_questions(tmp_path: Path) -> None:
    search = searching(tmp_path)
    search.run(NEAR, NEAR, limits=Limits(max_attempts=12), divides=True)
    assert search.model.problems[:2] == ["level1/1", "level1/2"], "each is tried"
    assert Counter(search.model.problems) == {"level1/1": 1, "level1/2": 11}, "90 % and 9 % of the roofline"


def searching(folder: Path) -> Searching:
    search = Searching(folder, turns=12)
    search.problems.append(samples.problem(2))
    return search


@pytest.mark.ci
def test_interrupted_at_any_question_the_division_goes_on_as_it_would_have(tmp_path: Path) -> None:
    speedups = [1.0, 2.0, 2.0, 5.0, 5.5, 9.0, 9.0, 9.1, 9.0, 9.0, 9.0, 9.0]
    (tmp_path / "whole").mkdir()
    whole = searching(tmp_path / "whole")
    whole.run(speedups, speedups, limits=Limits(max_attempts=10), divides=True)
    for most in range(1, 11):
        folder = tmp_path / str(most)
        folder.mkdir()
        parts = searching(folder)
        for limit in (most, 10):
            parts.run(speedups, speedups, limits=Limits(max_attempts=limit), divides=True)
        assert parts.model.problems == whole.model.problems


@given(st.lists(st.floats(0.1, 8.0) | st.just(0.0), min_size=1, max_size=40), st.floats(0.01, 1.0))
def test_nothing_is_expected_at_the_roofline_and_less_of_each_further_try(
    speedups: list[float], roofline: float
) -> None:
    assert expected_gain([]) == math.inf
    assert expected_gain(speedups, 1.0) == 0.0
    assert 0.0 <= expected_gain(speedups, roofline) < math.inf
    assert expected_gain([*speedups, *[0.0] * 9], roofline) <= expected_gain(speedups, roofline)
    assert expected_gain(speedups, roofline) >= expected_gain(speedups, min(1.0, 2 * roofline))
