"""Daemons of the service that are killed: nothing is lost, and nothing is judged twice in the books."""

from __future__ import annotations

import random
import time
from pathlib import Path

import pytest

from kernelproof.client import Candidate, Client
from tests.cli import material
from tests.cli.program import Program, kill
from tests.service.conftest import NO_PROGRAM, serving


def killed_at_random(program: Program, suite: Path, *, count: int, kills: int, seed: int) -> None:
    """Sends `count` evaluations, while the service and two more workers are killed `kills` times in all."""
    chance = random.Random(seed)
    sources = [f"{NO_PROGRAM} {n}" if n % 4 else material.wrong(f"wrong_{n}") for n in range(count)]
    candidates = [Candidate(source, "relu") for source in sources]
    workers = [program.start("workers") for _ in range(2)]
    done = 0
    try:
        while True:
            with serving(program, suite) as service, Client(service.url, patience_s=1) as client:
                sent = client.submit(candidates)
                while done < kills and not all(client.get(each.id).ended for each in sent):
                    time.sleep(chance.uniform(0.05, 0.6))
                    done += 1
                    victim = chance.randrange(3)
                    if victim == 2:
                        kill(service.process)
                        break
                    kill(workers[victim])
                    workers[victim] = program.start("workers")
                else:
                    ended = client.evaluate_many(candidates)
                    break
    finally:
        for worker in workers:
            kill(worker)
    assert [each.status for each in ended] == ["no_code" if n % 4 else "wrong_output" for n in range(count)]
    attempts = [each.raw["result"]["attempt"] for each in ended]
    assert len(set(attempts)) == count
    assert sorted(attempts) == sorted(each.id for each in program.attempts()), "judged twice in the books"


@pytest.mark.ci
def test_nothing_is_lost_or_judged_twice_while_daemons_are_killed(program: Program, suite: Path) -> None:
    killed_at_random(program, suite, count=24, kills=8, seed=1)


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_the_same_with_a_hundred_kills(program: Program, suite: Path) -> None:
    killed_at_random(program, suite, count=200, kills=100, seed=2)
