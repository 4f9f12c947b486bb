"""Jobs that end together, and scratch directories that do not outlast their owners."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from kernelproof.errors import SandboxError
from kernelproof.verifier.sandbox import Group, Job, Scratch, python_paths, sweep

HOLD = """
import signal
from kernelproof.verifier.sandbox import Scratch
scratch = Scratch()
(scratch.path / "deep").mkdir(mode=0o000)
print(scratch.path, flush=True)
signal.pause()
"""


def sleeper(scratch: Path) -> Job:
    return Job((sys.executable, "-I", "-c", "import time; time.sleep(1000)"), scratch, python_paths())


def test_closing_ends_every_job_and_refuses_further_ones() -> None:
    group = Group()
    with Scratch() as first, Scratch() as second:
        processes = [group.start(sleeper(scratch.path)) for scratch in (first, second)]
        assert [process.wait(0.3) for process in processes] == [None, None]
        group.close()
        ended = [process.wait(0) for process in processes]
        assert [(e.state, e.reason) for e in ended if e is not None] == [("killed", "closed")] * 2
        assert group.closed
        with pytest.raises(SandboxError, match="no job is started any more"):
            group.start(sleeper(first.path))


def test_a_part_ends_alone() -> None:
    group = Group()
    with Scratch() as first, Scratch() as second:
        other = group.start(sleeper(first.path))
        with group.part() as part:
            mine = group.start(sleeper(second.path))
            assert not group.closed
            part.close()
            outcome = mine.wait(0)
            assert outcome is not None and (outcome.state, outcome.reason) == ("killed", "closed")
            assert group.closed  # for this thread, which therefore starts no more
            with pytest.raises(SandboxError, match="no job is started any more"):
                group.start(sleeper(second.path))
        assert not group.closed and other.wait(0) is None
        again = group.start(sleeper(second.path))
        group.close()
        assert again.wait(0) is not None and other.wait(0) is not None


def test_its_jobs_run_on_its_cores() -> None:
    mine = os.sched_getaffinity(0)
    for cores in ((min(mine),), ()):
        with Scratch() as scratch:
            code = "import os; print(sorted(os.sched_getaffinity(0)))"
            outcome = Group(cores).run(Job((sys.executable, "-I", "-c", code), scratch.path, python_paths()))
        assert outcome.stdout.strip() == str(sorted(cores or mine))
    assert os.sched_getaffinity(0) == mine


def test_in_turn_each_gives_way_to_those_that_run_already() -> None:
    mine = os.getpriority(os.PRIO_PROCESS, 0)  # the tests may run under nice(1)
    nice = [str(min(19, mine + by)) for by in range(3)]
    group, code = Group(in_turn=True), "import os, time; print(os.nice(0), flush=True); time.sleep({})"
    with Scratch() as first, Scratch() as second:

        def job(scratch: Scratch, seconds: float) -> Job:
            return Job((sys.executable, "-I", "-c", code.format(seconds)), scratch.path, python_paths())

        running = group.start(job(first, 1000))
        assert group.run(job(second, 0)).stdout.strip() == nice[2]
        assert Group().run(job(second, 0)).stdout.strip() == nice[0]
        outcome = running.kill("closed")
        assert outcome.stdout.strip() == nice[1]
        assert group.run(job(second, 0)).stdout.strip() == nice[1]


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", None)
    return tmp_path


def test_a_sweep_takes_what_the_dead_left_and_nothing_else(temporary: Path) -> None:
    owner = subprocess.Popen([sys.executable, "-c", HOLD], stdout=subprocess.PIPE, text=True)
    assert owner.stdout is not None
    theirs = Path(owner.stdout.readline().strip())
    (temporary / "other").mkdir()
    (temporary / "kernelproof-scratch-link").symlink_to(temporary / "other")
    with Scratch() as mine:
        sweep()
        assert theirs.is_dir() and mine.path.is_dir()
        owner.send_signal(signal.SIGKILL)
        owner.communicate()
        sweep()
        assert not theirs.exists() and mine.path.is_dir()
        assert (temporary / "other").is_dir()
    assert not mine.path.exists()
    mine.remove()


def test_another_users_directory_is_left_alone(temporary: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root can give a directory to another user")
    foreign = temporary / "kernelproof-scratch-foreign"
    foreign.mkdir()
    os.chown(foreign, 12_345, 12_345)
    sweep()
    assert foreign.is_dir()
