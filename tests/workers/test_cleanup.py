"""What ends behind a verdict: in order, before anybody measures, and nothing is left of the last one."""

from __future__ import annotations

import threading
import time
from dataclasses import replace

import pytest

from kernelproof.types import Status
from kernelproof.verifier.workers.pool import DeferredCleanup
from tests.referee.corpus import members
from tests.referee.court import Court

RIGHT = next(member for member in members("cpu") if member.id == "honest/relu_where")


def test_one_after_the_other_and_the_caller_goes_on() -> None:
    behind, gate, ended = DeferredCleanup(), threading.Event(), list[int]()

    def end(number: int) -> None:
        gate.wait(10)
        ended.append(number)

    for number in range(5):
        behind.later(lambda number=number: end(number), 100)
    assert ended == [] and behind.nbytes == 500
    gate.set()
    behind.wait()
    assert ended == [0, 1, 2, 3, 4] and behind.nbytes == 0
    behind.wait()


def test_what_goes_wrong_is_told_to_who_waits() -> None:
    behind = DeferredCleanup()
    behind.later(lambda: time.sleep(-1))
    with pytest.raises(ValueError, match="sleep"):
        behind.wait()
    behind.later(lambda: None)
    behind.wait()


@pytest.mark.slow
def test_nothing_is_left_of_a_verification_with_one_behind_it(court: Court) -> None:
    untimed = RIGHT.settings.model_copy(update={"measure": False})
    request = replace(RIGHT, settings=untimed).request
    for ahead in (True, True, False):
        assert court.judge(request, ahead=ahead).status is Status.CORRECT
    assert court.left_over() == []
