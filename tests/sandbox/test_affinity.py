"""A thread of ours keeps to cores for a while, and so does what it starts meanwhile."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor

import pytest

from kernelproof.verifier.sandbox import on_cores

MINE = sorted(os.sched_getaffinity(0))


@pytest.mark.skipif(len(MINE) < 2, reason="one core is no choice")
def test_a_thread_and_what_it_starts_keep_to_cores_for_a_while() -> None:
    with on_cores(MINE[:1]), ThreadPoolExecutor(1) as started:
        assert os.sched_getaffinity(0) == set(MINE[:1])
        assert started.submit(os.sched_getaffinity, 0).result() == set(MINE[:1])
    assert os.sched_getaffinity(0) == set(MINE)


@pytest.mark.parametrize("cores", [(), (max(MINE) + 4096,)])
def test_without_cores_or_with_one_that_is_not_there_it_goes_where_it_may(cores: tuple[int, ...]) -> None:
    with on_cores(cores):
        assert os.sched_getaffinity(0) == set(MINE)
