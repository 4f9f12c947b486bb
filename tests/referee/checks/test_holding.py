"""A process that runs while it is held has cheated, whatever let it go on; one that only sleeps has not."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

import pytest

from kernelproof.problems import open_suite
from kernelproof.types import CheckOutcome, Status, VerifySettings
from kernelproof.types.verification import VerifyRequest
from kernelproof.verifier.referee.ledger import Ledger
from kernelproof.verifier.referee.stages import check_held
from kernelproof.verifier.sandbox import Held, probe
from kernelproof.verifier.status_rules import Ended
from kernelproof.verifier.workers.client import Contestant
from tests.workers.test_client import MOST, refuse

SPINNING = """
import threading

def spin():
    while True:
        sum(range(1000))

threading.Thread(target=spin, daemon=True).start()
"""
SLEEPING = """
import signal, threading, time

def sleep():
    while True:
        time.sleep(0.001)

for _ in range(50):
    threading.Thread(target=sleep, daemon=True).start()
signal.signal(signal.SIGALRM, lambda *_: None)
signal.setitimer(signal.ITIMER_REAL, 0.01, 0.01)
"""


@pytest.fixture
def ledger() -> Ledger:
    problem = open_suite().find("level1/1")
    settings = VerifySettings(backend="cpp")
    return Ledger(VerifyRequest(problem=problem, source="", settings=settings, device="cpu"))


def contestant_with(source: str) -> Contestant:
    made = Contestant(refuse, memory_bytes=4 << 30)
    made.wait_ready()
    made.ask({"op": "hello", "device": "cpu", "threads": 1, "flush_bytes": 0}, seconds=MOST)
    made.ask({"op": "load", "source": source, "seed": 0}, seconds=MOST)
    return made


def test_who_was_still_is_not_accused(ledger: Ledger) -> None:
    with contestant_with(SPINNING + SLEEPING) as contestant:
        for _ in range(20):
            contestant.pause()
            time.sleep(0.01)
            contestant.resume()
            time.sleep(0.005)
        check_held(contestant, ledger)
    (check,) = ledger.checks
    assert (check.name, check.outcome, check.figures["holds"]) == ("held_still", CheckOutcome.PASS, 20)


def test_who_went_on_has_cheated(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    """The kernel's SIGCONT is ours here. Where a control group holds the job, we thaw it behind the holder's
    back: what a hold is worth is seen from the processor time alone."""
    with contestant_with(SPINNING) as contestant:
        contestant.pause()
        pid = contestant.pids()[0]
        if probe().layers["pause"] == "SIGSTOP":
            for other in contestant.pids():
                os.kill(other, signal.SIGCONT)
        else:
            _thaw(pid)
        time.sleep(0.3)
        contestant.resume()
        with pytest.raises(Ended) as caught:
            check_held(contestant, ledger, 1)
    assert caught.value.status is Status.CHEATING
    (check,) = ledger.checks
    assert (check.name, check.outcome) == ("held_still: pair 2", CheckOutcome.FAIL)
    assert check.figures["ran_ms"] > 20


def _thaw(pid: int) -> None:
    lines = Path(f"/proc/{pid}/cgroup").read_text().splitlines()
    group = next(line.rpartition("/")[2] for line in lines if line.startswith("0::"))
    (folder,) = Path("/sys/fs/cgroup").rglob(group)
    (folder / "cgroup.freeze").write_text("0")


def test_who_was_never_held_is_not_judged(ledger: Ledger) -> None:
    with contestant_with("") as contestant:
        check_held(contestant, ledger)
    (check,) = ledger.checks
    assert check.outcome is CheckOutcome.NOT_APPLICABLE


def test_what_is_allowed_grows_with_the_holds_and_stays_far_below_a_block() -> None:
    assert Held(holds=1, ran_ms=0, woken=0).allowed_ms < 1
    assert Held(holds=1000, ran_ms=0, woken=0).allowed_ms < 0.02 * 1000
    assert Held(holds=35, ran_ms=0, woken=0, threads=120).allowed_ms > 1.58
