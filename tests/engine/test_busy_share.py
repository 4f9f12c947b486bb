"""How much of their time referees have a candidate."""

from __future__ import annotations

import pytest

from kernelproof.verifier.engine.referees import BusyTime


def test_the_share_is_over_all_of_them_since_each_started() -> None:
    now = [0.0]
    busy = BusyTime(clock=lambda: now[0])
    assert busy.share is None
    now[0] = 10.0
    busy.started("a")
    busy.began("a")
    now[0] = 14.0
    assert busy.share == 1.0
    busy.ended("a")
    busy.started("b")
    now[0] = 20.0  # a is there for 10 s and was busy for 4; b is there for 6 and was never
    assert busy.share == pytest.approx(4 / 16)
    busy.started("a")  # another process takes its place
    busy.began("b")
    now[0] = 22.0
    assert busy.share == pytest.approx(6 / 20)
