"""What is left of a killed harness's sandboxes does not outlive it for long."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from kernelproof.verifier.sandbox.procfs import at_rest

MARKED = """
import os, subprocess, sys
from kernelproof.verifier.sandbox.bwrap import lifeline_environment as environment
for env in (environment(), environment(), {}):
    print(subprocess.Popen(["sleep", "1000"], env=env, stdout=subprocess.DEVNULL, start_new_session=True).pid)
ours = environment()
if (child := os.fork()) == 0:
    os._exit(environment() == ours)
print(os.waitpid(child, 0)[1], flush=True)
sys.stdin.read()
"""
LIKE_BWRAP = """#!/bin/sh
# As bwrap is in the moment before it lets its first process go on: that one waits for it, and it for us.
[ "$1" = --help ] && exit
sleep 1000 & echo $$ $! > "$(dirname "$0")/pids"
exec sleep 1000
"""
LAUNCHING = """
import os, sys
from pathlib import Path
from kernelproof.verifier.sandbox.probe import launch
from kernelproof.verifier.sandbox.model import Job, Tier
launch(Job(("true",), Path(sys.argv[1])), Tier.A if os.geteuid() == 0 else Tier.B)
"""


@pytest.fixture
def started() -> Iterator[list[int]]:
    """Pids to kill at the end, whatever came of it."""
    pids: list[int] = []
    yield pids
    for pid in pids:
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            continue


def harness(code: str, *arguments: object, **environment: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", code, *map(str, arguments)],
        env=os.environ | environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


def killed(process: subprocess.Popen[str]) -> None:
    process.kill()
    process.communicate()


def runs(pid: int) -> bool:
    return not at_rest(pid)


def end_of(pids: list[int], seconds: float = 10.0) -> bool:
    """Whether all of them end in time."""
    deadline = time.monotonic() + seconds
    while any(map(runs, pids)) and time.monotonic() < deadline:
        time.sleep(0.02)
    return not any(map(runs, pids))


def test_what_has_the_mark_ends_with_its_harness_and_nothing_else(started: list[int]) -> None:
    process = harness(MARKED)
    assert process.stdout is not None
    *pids, alike = (int(process.stdout.readline()) for _ in range(4))
    started += pids
    assert alike == 0  # the mark of a forked child
    *marked, other = pids
    time.sleep(0.5)
    assert all(map(runs, pids))
    killed(process)
    assert end_of(marked)
    assert runs(other)


def test_the_first_process_of_a_namespace_does_not_wait_for_ever(tmp_path: Path, started: list[int]) -> None:
    program, scratch, written = tmp_path / "bwrap", tmp_path / "scratch", tmp_path / "pids"
    program.write_text(LIKE_BWRAP)
    program.chmod(0o755)
    scratch.mkdir()
    process = harness(LAUNCHING, scratch, KERNELPROOF_BWRAP=str(program))
    while not (written.exists() and written.read_text()):
        assert process.poll() is None
        time.sleep(0.01)
    pids = [int(pid) for pid in written.read_text().split()]
    started += pids
    killed(process)
    assert end_of(pids)
