"""Jobs that SIGKILL ends: from outside, by the kernel for lack of memory, or as the job itself wants it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from kernelproof.verifier.sandbox import Limits, Process, start
from tests.sandbox.test_process import python

GROUPS = Path("/sys/fs/cgroup/memory")
GROUP_BYTES = 500 << 20
IN_A_GROUP = """
import os, pathlib, sys, time
pathlib.Path(sys.argv[1], "cgroup.procs").write_text(str(os.getpid()))
from kernelproof.verifier.sandbox import Job, python_paths, start
code = "x, time = [bytearray(b'1') * (60 << 20)], __import__('time')\\n"
code += "while True: x.append(bytearray(b'1') * (%s << 20)); time.sleep(0.03)"
job = Job((sys.executable, "-I", "-c", code % sys.argv[3]), pathlib.Path(sys.argv[2]), python_paths())
mine = []
with start(job) as process:
    time.sleep(0.5)
    while (outcome := process.wait(0.02)) is None:
        mine.append(bytearray(b"1") * (int(sys.argv[4]) << 20))
print(outcome.state, outcome.signal, outcome.shortage, outcome.used_it_up)
"""


def ready(process: Process) -> int:
    """The process that runs the job's own program, once that has printed something."""
    deadline = time.monotonic() + 60
    while not process.output()[0]:
        assert time.monotonic() < deadline and process.wait(0.01) is None
    return process.pids()[-1]


def test_a_job_that_is_killed_from_outside_is_lost(tmp_path: Path) -> None:
    with start(python(tmp_path, "print('up', flush=True); __import__('time').sleep(1000)")) as process:
        os.kill(ready(process), signal.SIGKILL)
        outcome = process.wait(60)
    assert outcome is not None
    assert (outcome.state, outcome.signal) == ("lost", "SIGKILL")
    assert outcome.reason.startswith("killed from outside by SIGKILL")


@pytest.mark.parametrize(
    ("code", "state", "number"),
    [
        ("import os; os.kill(os.getpid(), 9)", "error", None),
        ("import os; os._exit(137)", "crash", "SIGSYS"),
        ("import resource; resource.setrlimit(0, (1, 1))\nwhile True: pass", "error", None),
        ("import ctypes; ctypes.CDLL(None).abort()", "crash", "SIGABRT"),
    ],
)
def test_a_job_does_not_pass_for_lost(tmp_path: Path, code: str, state: str, number: str | None) -> None:
    with start(python(tmp_path, code)) as process:
        outcome = process.wait(60)
    assert outcome is not None and (outcome.state, outcome.signal) == (state, number)


def test_a_job_above_its_memory_limit_is_stopped_for_that_whoever_stops_it(tmp_path: Path) -> None:
    """Stopped by us at another limit, between two looks of the watchdog."""
    code = "x = bytearray(b'1') * (300 << 20); print('up', flush=True); __import__('time').sleep(1000)"
    with start(python(tmp_path, code)) as process:
        ready(process)
        process.allow_memory(200 << 20)
        assert process.kill("too slow").state == "memory"


@pytest.fixture
def group() -> Iterator[Path]:
    """A control group with little memory, in which the kernel kills."""
    folder = GROUPS / f"kernelproof-test-{uuid.uuid4().hex}"
    try:
        folder.mkdir()
        (folder / "memory.limit_in_bytes").write_text(str(GROUP_BYTES))
    except OSError:
        pytest.skip("no memory group can be made here")
    yield folder
    for _ in range(100):
        for pid in (folder / "cgroup.procs").read_text().split():
            (folder.parent / "cgroup.procs").write_text(pid)
        try:
            return folder.rmdir()
        except OSError:
            time.sleep(0.1)


@pytest.mark.parametrize(
    ("job_mib", "harness_mib", "seen"),
    [(20, 0, "memory SIGKILL True True"), (0, 2, "lost SIGKILL True False")],
    ids=["a bomb", "the host is short of memory"],
)
def test_the_kernel_ends_jobs_first_when_memory_runs_out(
    tmp_path: Path, group: Path, job_mib: int, harness_mib: int, seen: str
) -> None:
    tmp_path.chmod(0o711)
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    words = (str(group), str(scratch), str(job_mib), str(harness_mib))
    done = subprocess.run(
        [sys.executable, "-c", IN_A_GROUP, *words], capture_output=True, text=True, timeout=120, check=False
    )
    assert done.stdout.strip() == seen, done.stderr


def test_the_limit_of_a_job_is_still_its_own(tmp_path: Path) -> None:
    code = "x = bytearray(b'1') * (300 << 20); __import__('time').sleep(1000)"
    with start(python(tmp_path, code, limits=Limits(memory_bytes=200 << 20))) as process:
        outcome = process.wait(60)
    assert outcome is not None and (outcome.state, outcome.used_it_up) == ("memory", False)
