"""A referee keeps off the cores that are kept for other GPUs, and comes back from where it kept to."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import psutil
import pytest

from kernelproof.types import CoreShares, Status
from kernelproof.verifier.build import learn_toolchain
from kernelproof.verifier.engine.referee_process import RefereeProcess
from tests.referee.corpus import members

MINE = sorted(os.sched_getaffinity(0))
RIGHT = next(member for member in members("cpu") if member.id == "honest/relu_where")


@pytest.mark.ci
@pytest.mark.skipif(len(MINE) < 2, reason="one core is no choice")
def test_a_referee_keeps_to_its_own_cores_while_it_judges(cache: Path) -> None:
    untimed = RIGHT.settings.model_copy(update={"measure": False})
    request = replace(RIGHT, settings=untimed).request
    before = {process.pid for process in psutil.Process().children()}
    referee = RefereeProcess(cache, None)
    (pid,) = {process.pid for process in psutil.Process().children()} - before
    seen: dict[str, set[int]] = {}

    def look(stage: str) -> None:
        seen[stage] = os.sched_getaffinity(pid)

    try:
        toolchain = learn_toolchain(cache)
        found = referee.verify(request, toolchain, look, cores=CoreShares(measured=tuple(MINE[:1])))
        assert found.status is Status.CORRECT
        assert seen["reference"] == seen["correctness"] == set(MINE[:1])
        assert os.sched_getaffinity(pid) == set(MINE)
    finally:
        referee.close()
