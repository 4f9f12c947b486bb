"""Launchers as a person uses them: real workers on this machine, in a Ray cluster, under Slurm."""

from __future__ import annotations

import re
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest

from kernelproof.choices import Role
from kernelproof.client import Candidate, Client
from kernelproof.service.artefact_places import artefacts_place
from kernelproof.service.launchers.keeping import environment_of, options_of
from kernelproof.service.launchers.model import Wanted
from kernelproof.workspace import open_workspace
from tests.cli import material
from tests.cli.program import Program
from tests.service.conftest import NO_PROGRAM, serving

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
    lines = program.run("workers", *which, "--status").stdout.splitlines()
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
        (("--local", "--slurm"), "--local and --slurm exclude each other"),
        (("--local", "--status", "--stop"), "--status and --stop exclude each other"),
        (("--status",), "--status belongs to --local, --ray or --slurm"),
        (("--local", "--minutes", "5"), "--minutes is not for --local"),
        (("--local", "--judges", "0", "--builders", "0"), "starts nothing"),
        (("--ray", "auto"), "give a database on a server"),
        (("--slurm", "--status"), "give a database on a server"),
    ],
)
def test_mistakes_are_told_in_a_line(program: Program, words: tuple[str, ...], message: str) -> None:
    said = program.run("workers", *words, code=2).stderr
    assert message in said and said.count("\n") == 1


@pytest.mark.ci
def test_workers_of_this_machine_are_kept_running(program: Program, suite: Path) -> None:
    keeping = program.start("workers", "--local", "--judges", 2, "--builders", 0)
    try:
        until(lambda: all(map(process_of, standing(program, "--local").values() or [[""]])), "no worker")
        before = {name: process_of(words) for name, words in standing(program, "--local").items()}
        assert sorted(before) == ["judge-0", "judge-1"]
        again = program.run("workers", "--local", code=3).stderr
        assert "workers of this workspace are running" in again
        victim = before["judge-0"]
        assert victim is not None
        psutil.Process(victim).kill()

        def restarted() -> bool:
            now = process_of(standing(program, "--local")["judge-0"])
            return now is not None and now != victim

        until(restarted, "the worker that was killed is not started again")
        assert "exit code -9, end 1" in " ".join(standing(program, "--local")["judge-0"])
        with serving(program, suite, "--no-worker") as service, Client(service.url) as client:
            found = client.evaluate_many([Candidate(f"{NO_PROGRAM} {n}", "relu") for n in range(6)])
        assert [each.status for each in found] == ["no_code"] * 6
        assert "ended 2 workers: judge-0, judge-1" in program.run("workers", "--local", "--stop").stdout
        assert keeping.wait(30) == 0
    finally:
        end(keeping)
    assert standing(program, "--local") == {}
    assert "no workers run here" in program.run("workers", "--local", "--stop").stdout
    assert program.left_after() == {}


@pytest.mark.ci
def test_workers_end_with_a_launcher_that_is_killed(program: Program, suite: Path) -> None:
    keeping = program.start("workers", "--local")
    try:
        until(lambda: all(map(process_of, standing(program, "--local").values() or [[""]])), "no worker")
        assert sorted(standing(program, "--local")) == ["builder-0", "judge-0"]
        with serving(program, suite, "--no-worker") as service, Client(service.url) as client:
            assert client.evaluate(Candidate(material.wrong(), "relu")).status == "wrong_output"
    finally:
        end(keeping)
    assert standing(program, "--local") == {}
    assert program.left_after(60) == {}


def end(process: subprocess.Popen[str]) -> None:
    """Kills a launcher that is still there."""
    if process.poll() is None:
        process.kill()
    process.communicate(timeout=60)


def test_workers_elsewhere_learn_where_artefacts_are(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9000")
    monkeypatch.chdir(tmp_path)
    place = open_workspace(tmp_path, None)
    for artefacts in ("s3://builds/folder", "simplecache::s3://builds/folder"):
        wanted = Wanted(place, artefacts=artefacts_place(artefacts))
        assert options_of(wanted, Role.BUILD)[-2:] == ["--artefacts", artefacts]
        assert environment_of(wanted)["AWS_ENDPOINT_URL"] == "http://127.0.0.1:9000"
    for artefacts in ("builds", f"file://{tmp_path}/builds"):
        wanted = Wanted(place, artefacts=artefacts_place(artefacts))
        assert options_of(wanted, Role.BUILD)[-2:] == ["--artefacts", str(tmp_path / "builds")]
        assert "AWS_ENDPOINT_URL" not in environment_of(wanted)
