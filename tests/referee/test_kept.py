"""What a referee keeps between verifications: the device is its own until nothing of it is left there."""

from __future__ import annotations

import select
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from pipeline.referee.device import exclusive
from pipeline.referee.kept import Kept

ROOT = Path(__file__).parents[2]
KEY = "GPU-00000000-1111-2222-3333-444444444444"
OTHER = f"""
import sys
from pipeline.referee.device import exclusive
with exclusive.held({KEY!r}, lambda text: print("waits", flush=True)):
    print("held", flush=True)
    sys.stdin.readline()
"""
Process = subprocess.Popen[str]


@pytest.fixture
def other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[], Process]]:
    monkeypatch.setenv(exclusive.DIRECTORY_VARIABLE, str(tmp_path / "locks"))
    started: list[Process] = []

    def start() -> Process:
        command = [sys.executable, "-c", OTHER]
        started.append(
            subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=ROOT)
        )
        return started[-1]

    yield start
    for process in started:
        process.kill()
        process.communicate()


class Left:
    """What a verification leaves to be done behind it, until it is told to be done."""

    def __init__(self, kept: Kept) -> None:
        self.told = threading.Event()
        kept.behind.later(lambda: self.told.wait(60) and None)


def said(process: Process) -> str:
    assert process.stdout is not None
    return process.stdout.readline().strip()


def silent(process: Process) -> bool:
    assert process.stdout is not None
    return not select.select([process.stdout], [], [], 0.3)[0]


def verified(kept: Kept) -> Left:
    """A verification that leaves something to be done."""
    with kept.alone(KEY, lambda _: None):
        return Left(kept)


def test_others_get_the_device_when_nothing_is_left_on_it(other: Callable[[], Process]) -> None:
    left = verified(Kept())
    process = other()
    assert said(process) == "waits" and silent(process)
    left.told.set()
    assert said(process) == "held"


def test_the_next_one_goes_on_at_once_and_holds_the_device_all_the_time(other: Callable[[], Process]) -> None:
    kept = Kept()
    first = verified(kept)
    second = verified(kept)  # does not wait for what the first one left
    process = other()
    assert said(process) == "waits"
    first.told.set()
    assert silent(process)  # what lets go for the first one must not do so for the second
    second.told.set()
    assert said(process) == "held"


def test_who_waits_for_the_device_comes_before_the_next_one(other: Callable[[], Process]) -> None:
    kept = Kept()
    left = verified(kept)
    process = other()
    assert said(process) == "waits"
    order: list[str] = []

    def again() -> None:
        with kept.alone(KEY, lambda _: order.append("waits")):
            order.append("in")

    thread = threading.Thread(target=again)
    thread.start()
    left.told.set()
    assert said(process) == "held"
    while not order:
        thread.join(0.01)
    assert order == ["waits"]
    assert process.stdin is not None
    process.stdin.write("\n")
    process.stdin.flush()
    thread.join(60)
    assert order == ["waits", "in"]
    kept.close()


def test_what_goes_wrong_behind_it_does_not_keep_the_device(other: Callable[[], Process]) -> None:
    kept = Kept()
    with kept.alone(KEY, lambda _: None):
        kept.behind.later(lambda: exclusive.checked_key("no key") and None)
    process = other()
    while (line := said(process)) != "held":
        assert line == "waits"
    with pytest.raises(ValueError, match="no key"):
        kept.close()
