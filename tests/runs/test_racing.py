"""A search that races: attempts are screened, equal ones verified once, the best once more."""

from __future__ import annotations

import io
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from kernelproof.errors import MachineError
from kernelproof.report.sample import print_progress
from kernelproof.runs.events import Phase, Progress
from kernelproof.runs.limits import Limits
from kernelproof.types import Rigor, Status
from tests.runs.racing import SETTINGS, Searching

LUCKY = [1.0, 2.0, 3.0, 1.5, 2.5, 1.1]
TRUE = [1.0, 2.0, 2.4, 1.5, 2.6, 1.1]


def test_the_best_is_verified_again_and_its_second_figure_is_reported(tmp_path: Path) -> None:
    search = Searching(tmp_path)
    _, verified = search.run(LUCKY, TRUE)
    assert [number for number, _ in verified] == [1, 2, 3, 4, 5, 6, 3]
    assert [bar for _, bar in verified] == pytest.approx([0, 0.99, 1.98, 2.97, 2.97, 2.97, None])
    best = search.attempts[2]
    assert [each.verification.settings.rigor for each in best.verifications] == ["quick", "standard"]
    assert best.verdict is not None and best.verdict.verification.settings == SETTINGS
    assert all(len(each.verifications) == 1 for each in search.attempts if each.id != best.id)
    assert search.ranked is not None
    assert (search.ranked.attempt_id, search.ranked.speedup) == (best.id, 2.4), "not 2.5, a screening"
    ended = [event for event in search.events if event.phase is Phase.ENDED and event.confirmed]
    assert [event.attempt_id for event in ended] == [best.id]
    assert search.run(LUCKY, TRUE)[1] == []


def test_a_display_shows_screenings_until_the_best_is_verified_again(tmp_path: Path) -> None:
    search, progress = Searching(tmp_path), Progress([("scripted", 1, 6)])
    search.run(LUCKY, TRUE)
    seen = []
    for event in search.events:
        progress.on_event(event)
        if event.phase is Phase.ENDED:
            seen += [(one.speedup, one.screened) for one in progress.snapshot().fastest]
    assert seen == [(1.0, True), (2.0, True), *[(3.0, True)] * 4, (2.4, False)]
    now = progress.snapshot()
    assert [one.speedup for one in now.fastest] == [2.4] and now.models[0].fastest == 2.4
    assert now.whole.ended == 6


def test_where_the_best_turns_out_wrong_the_next_one_is_verified_again(tmp_path: Path) -> None:
    search = Searching(tmp_path)
    _, verified = search.run(LUCKY, [1.0, 2.0, None, 1.5, 2.6, 1.1])
    assert [number for number, bar in verified if bar is None] == [3, 5]
    assert [each.status for each in search.attempts][2] is Status.WRONG_OUTPUT
    assert search.ranked is not None and search.ranked.speedup == 2.6
    assert search.run(LUCKY, TRUE)[1] == []


@pytest.mark.few(2)
@pytest.mark.parametrize("dies_at", range(1, 8))
def test_killed_at_any_verification_nothing_is_asked_or_verified_twice(tmp_path: Path, dies_at: int) -> None:
    search = Searching(tmp_path)
    outcome, before = search.run(LUCKY, TRUE, dies_at=dies_at)
    assert outcome is None and len(before) == dies_at - 1
    _, after = search.run(LUCKY, TRUE)
    assert [number for number, _ in (*before, *after)] == [1, 2, 3, 4, 5, 6, 3]
    assert max(Counter(search.model.asked).values()) == 1
    assert search.ranked is not None and search.ranked.speedup == 2.4


@pytest.mark.ci
def test_killed_between_the_second_verdict_and_the_status_it_is_not_made_again(tmp_path: Path) -> None:
    search, wrong = Searching(tmp_path), [1.0, 2.0, None, 1.5, 2.6, 1.1]

    def fragile(store: Any) -> None:
        finish = store.finish_attempt

        def finishes(attempt_id: int, status: Status, owner: str | None = None) -> None:
            if status is Status.WRONG_OUTPUT:
                raise MachineError("killed")
            finish(attempt_id, status, owner)

        store.finish_attempt = finishes

    assert search.run(LUCKY, wrong, change=fragile)[0] is None
    assert search.attempts[2].status is Status.CORRECT
    assert [number for number, _ in search.run(LUCKY, wrong)[1]] == [5]
    assert search.attempts[2].status is Status.WRONG_OUTPUT


def test_good_enough_is_what_the_second_verification_finds_so(tmp_path: Path) -> None:
    search = Searching(tmp_path, good_enough=0.25)
    _, verified = search.run(LUCKY, [1.0, 2.0, 2.4, 1.5, 2.6, 1.1])
    assert [number for number, _ in verified] == [1, 2, 3, 3, 4, 5, 5], "3 seemed to reach it, 5 does"
    over = [event for event in search.events if event.phase is Phase.OVER]
    assert [event.note for event in over] == ["good enough: 26.0 % of the roofline"]
    assert search.run(LUCKY, TRUE)[1] == []


def test_without_racing_each_is_verified_once_as_the_run_says(tmp_path: Path) -> None:
    search = Searching(tmp_path, race=False)
    _, verified = search.run(LUCKY, TRUE)
    assert verified == [(number, None) for number in range(1, 7)]
    assert {each.verifications[0].verification.settings.rigor for each in search.attempts} == {Rigor.STANDARD}


def test_a_limit_ends_the_questions_and_the_best_so_far_is_verified_again(tmp_path: Path) -> None:
    search = Searching(tmp_path)
    outcome, verified = search.run(LUCKY, TRUE, limits=Limits(max_attempts=2))
    assert outcome is not None and outcome.limit is not None and search.model.asked == [1, 2]
    assert [number for number, bar in verified if bar is None] == [2]
    assert [number for number, _ in search.run(LUCKY, TRUE)[1]] == [3, 4, 5, 6, 3]
    assert search.ranked is not None and search.ranked.speedup == 2.4


def test_progress_says_which_question_led_to_which_gain(tmp_path: Path) -> None:
    search = Searching(tmp_path)
    search.run([None, 2.0, 3.0, None, 1.5, 2.5], [None, 2.0, 2.4, None, 1.5, 2.5])
    console = Console(width=120, file=io.StringIO())
    print_progress(search.attempts, console)
    text = console.file.getvalue()  # type: ignore[attr-defined]
    lines = [" ".join(line.split()) for line in text.splitlines()]
    assert "1 #1 first question wrong_output 0" in lines
    assert "2 #2 repair wrong_output #1 correct 2.00× correct 2.00× 0" in lines
    assert "3 #3 make it faster #2 correct 3.00× 1.50× 3.00× 0" in lines
    assert "5 #5 repair wrong_output #4 correct 1.50× correct 3.00× 0" in lines
    assert "make it faster 3 2 1" in lines and "repair wrong_output 2 2 1" in lines
    assert "#3 verified again at standard: 2.40× [2.38, 2.42] faster" in text


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
