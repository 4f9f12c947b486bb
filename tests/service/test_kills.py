"""Daemons are killed while they work, also by their candidates: nothing is lost, nothing judged twice."""

from __future__ import annotations

import subprocess
import sys
import threading
from pathlib import Path

import pytest

from kernelproof.client import Candidate, Client
from tests.cli import material
from tests.cli.program import Program, kill
from tests.service.conftest import NO_PROGRAM, serving
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


LIMIT_S = 240.0
LOSSES = 3
DEADLY = "# the process that verifies this is killed"
WORKER = f"""
import os, signal
from kernelproof.verifier.engine.engine import Engine
from kernelproof.service import serving

class Killed(Engine):
    def verify(self, source, *more, **named):
        if {DEADLY!r} in source:
            os.kill(os.getpid(), signal.SIGKILL)
        return super().verify(source, *more, **named)

serving.Engine = Killed
from kernelproof.cli.app import main
main()
"""


@pytest.mark.ci
@pytest.mark.timeout(600)
def test_an_evaluation_that_kills_its_judge_each_time_ends_and_others_beside_it_pass(
    program: Program, suite: Path
) -> None:
    sources = [NO_PROGRAM, material.right("one") + DEADLY, material.right("two"), material.wrong("three")]
    with serving(program, suite, "--no-worker", "--max-losses", LOSSES) as running:
        deaths, over = list[int](), threading.Event()
        keeper = threading.Thread(target=_keep, args=(program, deaths, over))
        keeper.start()
        try:
            with Client(running.url, patience_s=LIMIT_S) as client:
                found = client.evaluate_many([Candidate(source, "relu") for source in sources])
        finally:
            over.set()
            keeper.join(LIMIT_S)
    assert [each.status for each in found] == ["no_code", None, "correct", "wrong_output"]
    killer = found[1]
    assert (killer.state, killer.failed, killer.score) == ("failed", True, None)
    assert f"lost {LOSSES} times" in killer.raw["error"]
    assert deaths == [-9] * LOSSES, "workers ended for another reason"
    assert len(program.attempts()) == 3, "what has no verdict is no attempt"


def _keep(program: Program, deaths: list[int], over: threading.Event) -> None:
    """Has a worker run, one after the other, until `over`; `deaths`: the exit codes of those that ended."""
    while not over.is_set():
        process = subprocess.Popen(
            [sys.executable, "-c", WORKER, "service", "workers"],
            env=program.environment,
            cwd=program.workspace,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        while process.poll() is None and not over.wait(0.05):
            pass
        if process.poll() is None:
            kill(process)
            return
        process.communicate()
        deaths.append(process.returncode)
