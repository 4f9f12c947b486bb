"""A candidate's process that somebody outside kills while it works: our fault, and tried again."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest

from kernelproof.jobs import Job, Judge
from kernelproof.problems import open_suite
from kernelproof.types import BuildState, Problem, Status, VerifySettings
from kernelproof.verifier.engine.build_stage import prebuild
from kernelproof.verifier.engine.engine import Engine
from kernelproof.verifier.sandbox import Group
from tests.cli import material

SETTINGS = VerifySettings(backend="cpp", trials=1, measure=False)
MARK = "killed_here"
WAITING = f"open('{MARK}', 'w').close(); __import__('time').sleep(2)"
"""A candidate at a certain place: its scratch directory then has a file of this name."""
WITH_TORCH = f"if 'kernelproof.verifier.contestant.main' in __import__('sys').modules: {WAITING}"


@pytest.fixture(scope="module")
def problem(tmp_path_factory: pytest.TempPathFactory) -> Problem:
    return open_suite(material.problems(tmp_path_factory.mktemp("suite") / "problems")).find("relu")


def waits_in_forward(name: str) -> str:
    head = "    def forward(self, x):\n"
    return material.right(name).replace(head, f"{head}        {WITH_TORCH}\n")


def waits_in_import(name: str) -> str:
    return f"{material.right(name)}\n{WITH_TORCH}\nimport_that_is_not_static = [str(3)]\n"


@contextmanager
def killer(most: int) -> Iterator[Callable[[], int]]:
    """Kills the first so many processes that wait where WAITING is."""
    over, homes = threading.Event(), set[str]()

    def work() -> None:
        while not over.wait(0.05) and len(homes) < most:
            for process in psutil.Process().children(recursive=True):
                try:
                    home = process.environ().get("HOME", "/")
                except psutil.Error:
                    continue
                if Path(home, MARK).exists() and home not in homes and "-c" in process.cmdline():
                    time.sleep(0.1)
                    os.kill(process.pid, signal.SIGKILL)
                    homes.add(home)

    thread = threading.Thread(target=work)
    thread.start()
    try:
        yield lambda: len(homes)
    finally:
        over.set()
        thread.join()


@pytest.mark.ci
def test_a_candidate_that_is_killed_once_is_judged_as_if_never(problem: Problem, cache: Path) -> None:
    with Engine(cache) as engine:
        with killer(1) as count:
            first = engine.verify(waits_in_forward("killed_once"), problem, SETTINGS)
        assert count() == 1
        assert (first.status, first.exit) == (Status.INFRASTRUCTURE_ERROR, "signal SIGKILL")
        assert first.reason.startswith("its process was lost: killed from outside by SIGKILL")
        with killer(1) as count:
            found = Judge(engine).judge(Job.of_text(waits_in_forward("killed_twice"), problem, SETTINGS))
        assert (count(), found.status) == (1, Status.CORRECT)


@pytest.mark.ci
def test_one_killed_at_its_import_in_the_build_stage_ends_neither_it_nor_the_command(
    problem: Problem, cache: Path
) -> None:
    source = waits_in_import("killed_at_import")
    # Only torch knows the name of its extension.
    source = source.replace('"killed_at_import"', '"killed_at_" + str(torch.ones(2).dim())')
    with Engine(cache) as engine:
        with killer(1) as count:
            early = f"{WAITING}\n{material.right('killed_with_the_stub')}"
            found = prebuild(engine.builds.builder, cache, early, SETTINGS, Group(), problem)
        assert count() == 1 and [each.state for each in found.builds] == [BuildState.OK]
        with killer(1) as count:
            found = prebuild(engine.builds.builder, cache, source, SETTINGS, Group(), problem)
        assert count() == 1 and [each.state for each in found.builds] == [BuildState.INFRASTRUCTURE]
        with killer(1) as count:
            verdict = Judge(engine).judge(Job.of_text(source, problem, SETTINGS))
    assert (count(), verdict.status) == (1, Status.CORRECT)


@pytest.mark.ci
@pytest.mark.parametrize(
    ("end", "status"),
    [
        ("__import__('os').kill(__import__('os').getpid(), 9)", Status.RUNTIME_ERROR),
        ("__import__('os')._exit(137)", Status.CRASH),
        ("__import__('ctypes').CDLL(None).abort()", Status.CRASH),
    ],
)
def test_one_that_ends_itself_is_charged(problem: Problem, cache: Path, end: str, status: Status) -> None:
    source = waits_in_forward("ends_itself").replace(WITH_TORCH, end)
    with Engine(cache) as engine:
        assert engine.verify(source, problem, SETTINGS).status is status
