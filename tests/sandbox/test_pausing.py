"""A paused job does nothing, children and threads included, until it is resumed; killing it still works."""

from __future__ import annotations

import sys
import time
from pathlib import Path

import pytest

from pipeline.sandbox import Job, python_paths, start

TICKING = """
import os, threading, time

def tick(name):
    while True:
        with open(name, "a") as file:
            file.write("x")
        time.sleep(0.005)

if os.fork() == 0:
    tick("child")
threading.Thread(target=tick, args=("thread",), daemon=True).start()
tick("main")
"""
NAMES = ("main", "thread", "child")


def sizes(scratch: Path) -> list[int]:
    return [(scratch / name).stat().st_size if (scratch / name).exists() else 0 for name in NAMES]


def wait_for_growth(scratch: Path, before: list[int]) -> None:
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline:
        if all(now > then for now, then in zip(sizes(scratch), before, strict=True)):
            return
        time.sleep(0.01)
    pytest.fail(f"it does not run: {before} then, {sizes(scratch)} now")


def test_nothing_of_a_paused_job_runs(tmp_path: Path) -> None:
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    job = Job(argv=(sys.executable, "-I", "-c", TICKING), scratch=scratch, read_only=python_paths())
    with start(job) as process:
        wait_for_growth(scratch, [0, 0, 0])
        for _ in range(3):
            process.pause()
            held = sizes(scratch)
            time.sleep(0.1)
            assert sizes(scratch) == held
            process.resume()
            wait_for_growth(scratch, held)
        process.pause()
        outcome = process.kill()
    assert outcome.state == "killed"


RESTLESS = """
import os, signal, time

with open("main", "a") as file:
    file.write("x")
parent = os.getpid()
if os.fork() == 0:
    while True:  # wakes who was stopped, and has ever new children
        try:
            os.kill(parent, signal.SIGCONT)
        except ProcessLookupError:
            os._exit(0)
        if os.fork() == 0:
            time.sleep(0.01)
            os._exit(0)
        try:
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        except ChildProcessError:
            pass
while True:
    with open("thread", "a") as file:
        file.write("x")
"""


def test_a_job_that_wakes_itself_and_forks_is_held_or_killed(tmp_path: Path) -> None:
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    job = Job(argv=(sys.executable, "-I", "-c", RESTLESS), scratch=scratch, read_only=python_paths())
    with start(job) as process:
        deadline = time.monotonic() + 20
        while not (scratch / "thread").exists() and time.monotonic() < deadline:
            time.sleep(0.01)
        process.pause()
        held = (scratch / "thread").stat().st_size
        time.sleep(0.2)
        assert (scratch / "thread").stat().st_size == held
