"""What a referee keeps between verifications: the device is its own until nothing of it is left there."""

from __future__ import annotations

import os
import select
import threading
from collections.abc import Callable

import pytest

from kernelproof.verifier.devices import locks
from kernelproof.verifier.referee.session import WarmState
from tests.devices.holders import HOLD, KEY, Holder, let_go, line

WAITS = f"waiting for {KEY}: process {os.getpid()} is measuring on it"


class Left:
    """What a verification leaves to be done behind it, until it is told to be done."""

    def __init__(self, warm: WarmState) -> None:
        self.told = threading.Event()
        warm.cleanup.later(lambda: self.told.wait(60) and None)


def silent(process: Holder) -> bool:
    assert process.stdout is not None
    return not select.select([process.stdout], [], [], 0.3)[0]


def verified(warm: WarmState) -> Left:
    """A verification that leaves something to be done."""
    with warm.alone(KEY, lambda _: None):
        return Left(warm)


def test_others_get_the_device_when_nothing_is_left_on_it(start: Callable[..., Holder]) -> None:
    left = verified(WarmState())
    process = start(HOLD)
    assert line(process) == WAITS and silent(process)
    left.told.set()
    assert line(process) == "held"


def test_the_next_one_goes_on_at_once_and_holds_the_device_all_the_time(start: Callable[..., Holder]) -> None:
    warm = WarmState()
    first = verified(warm)
    second = verified(warm)  # does not wait for what the first one left
    process = start(HOLD)
    assert line(process) == WAITS
    first.told.set()
    assert silent(process)  # what lets go for the first one must not do so for the second
    second.told.set()
    assert line(process) == "held"


def test_who_waits_for_the_device_comes_before_the_next_one(start: Callable[..., Holder]) -> None:
    warm = WarmState()
    left = verified(warm)
    process = start(HOLD)
    assert line(process) == WAITS
    order: list[str] = []

    def again() -> None:
        with warm.alone(KEY, lambda _: order.append("waits")):
            order.append("in")

    thread = threading.Thread(target=again)
    thread.start()
    left.told.set()
    assert line(process) == "held"
    while not order:
        thread.join(0.01)
    assert order == ["waits"]
    let_go(process)
    thread.join(60)
    assert order == ["waits", "in"]
    warm.close()


def test_what_goes_wrong_behind_it_does_not_keep_the_device(start: Callable[..., Holder]) -> None:
    warm = WarmState()
    with warm.alone(KEY, lambda _: None):
        warm.cleanup.later(lambda: locks.checked_key("no key") and None)
    process = start(HOLD)
    while (said := line(process)) != "held":
        assert said == WAITS
    with pytest.raises(ValueError, match="no key"):
        warm.close()
