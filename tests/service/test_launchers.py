"""The commands of launchers, and what workers elsewhere are told."""

from __future__ import annotations

import os
import re
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

import kernelproof
from kernelproof.choices import Role
from kernelproof.errors import UsageError
from kernelproof.service.artefacts import artefacts_place
from kernelproof.service.launchers import Supervisor, WorkerCommand
from kernelproof.workspace import open_workspace
from tests.cli.program import Program

PATIENCE_S = 180.0
"""For what takes seconds on an idle machine."""


def until(found: Callable[[], object], what: str) -> None:
    """Waits for a condition."""
    deadline = time.monotonic() + PATIENCE_S
    while not found():
        assert time.monotonic() < deadline, what
        time.sleep(0.1)


def standing(program: Program, *which: str) -> dict[str, list[str]]:
    """Names of workers, and the words that `--status` says of them."""
    lines = program.run("service", "workers", *which, "--status").stdout.splitlines()
    return {
        words[0]: words[1:] for line in lines if (words := line.split()) and line != "no workers run here"
    }


def process_of(words: list[str]) -> int | None:
    """The process of a running worker."""
    found = re.search(r"process (\d+)", " ".join(words))
    return int(found[1]) if found and words[0] == "running" else None


@pytest.mark.few(3)
@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--ray", "auto", "--slurm"), "--ray and --slurm exclude each other"),
        (("--slurm", "--status", "--stop"), "--status and --stop exclude each other"),
        (("--status",), "--status belongs to --ray or --slurm"),
        (("--judges", "0"), "--judges belongs to --ray or --slurm"),
        (("--ray", "auto"), "give a database on a server"),
        (("--slurm", "--status"), "give a database on a server"),
    ],
)
def test_mistakes_are_told_in_a_line(program: Program, words: tuple[str, ...], message: str) -> None:
    said = program.run("service", "workers", *words, code=2).stderr
    assert message in said and said.count("\n") == 1


def test_workers_elsewhere_learn_where_artefacts_are(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9000")
    monkeypatch.chdir(tmp_path)
    place = open_workspace(tmp_path, None)
    for artefacts in ("s3://builds/folder", "simplecache::s3://builds/folder"):
        command = WorkerCommand(place, artefacts=artefacts_place(artefacts))
        assert command.options(Role.BUILD) == ["--role", "build", "--artefacts", artefacts]
        assert command.environment["AWS_ENDPOINT_URL"] == "http://127.0.0.1:9000"
    for artefacts in ("builds", f"file://{tmp_path}/builds"):
        command = WorkerCommand(place, artefacts=artefacts_place(artefacts))
        assert command.options(Role.JUDGE)[-2:] == ["--artefacts", str(tmp_path / "builds")]
        assert "AWS_ENDPOINT_URL" not in command.environment


def test_a_worker_imports_the_copy_that_starts_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An actor of Ray runs where other copies may be installed."""
    interpreter, path = tmp_path / "python", tmp_path / "path"
    interpreter.write_text(
        f'#!/bin/sh\nprintf %s "$PYTHONPATH" > {path}.partial; mv {path}.partial {path}; cat\n'
    )
    interpreter.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(interpreter))
    supervisor = Supervisor("the worker", [], {})
    supervisor.start()
    try:
        until(path.exists, "no worker was started")
    finally:
        supervisor.end()
    first = Path(path.read_text().split(os.pathsep)[0])
    assert (first / "kernelproof" / "__init__.py").samefile(kernelproof.__file__)


def test_builders_and_judges_have_to_meet(tmp_path: Path) -> None:
    alone = WorkerCommand(open_workspace(tmp_path, None))
    assert alone.roles(1, 0) == {"judge-0": Role.ALL}
    for judges, builders, message in ((1, 1, "builders need --artefacts"), (0, 0, "starts nothing")):
        with pytest.raises(UsageError, match=message):
            alone.roles(judges, builders)
    shared = replace(alone, artefacts=str(tmp_path))
    assert shared.roles(1, 1) == {"builder-0": Role.BUILD, "judge-0": Role.JUDGE}
