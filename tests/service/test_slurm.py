"""Workers as jobs of a real Slurm: submitted, queued again, cancelled. Left out where there is no Slurm."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from kernelproof.client import Candidate, Client
from tests.cli.program import Program
from tests.postgres import PASSWORD, PostgresServer
from tests.service.conftest import NO_PROGRAM, serving
from tests.service.slurm_cluster import slurm
from tests.service.test_launchers import standing, until


@pytest.fixture
def shared(program: Program, postgres: PostgresServer) -> Iterator[Program]:
    """The program with a database that other machines reach, on a machine that submits jobs."""
    with slurm() as environment:
        url = postgres.loopback(postgres.made()).url
        yield replace(program, extra={**environment, "KERNELPROOF_DB": url})


def said(program: Program, *command: str) -> str:
    """The output of a command of Slurm."""
    done = subprocess.run(command, env=program.environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def job_of(program: Program) -> str | None:
    """The number of the running job of the one worker; None while it waits."""
    words = standing(program, "--slurm").get("judge-0", ["gone"])
    found = re.search(r"job (\d+)", " ".join(words))
    return found[1] if found and words[0] == "running" else None


@pytest.mark.ci
@pytest.mark.timeout(900)
def test_a_job_is_submitted_queued_again_and_cancelled(shared: Program, suite: Path) -> None:
    started = ("--slurm", "--judges", 1)
    shared.run("service", "workers", *started)
    try:
        until(lambda: job_of(shared), f"the job does not run: {standing(shared, '--slurm')}")
        job = job_of(shared)
        assert job is not None
        shared.run("service", "workers", *started)
        assert len(standing(shared, "--slurm")) == 1, "submitted a second time"
        with serving(shared, suite, "--no-worker") as service, Client(service.url) as client:
            found = client.evaluate_many([Candidate(f"{NO_PROGRAM} {n}", "relu") for n in range(4)])
            assert [each.status for each in found] == ["no_code"] * 4
            said(shared, "scancel", "--batch", "--signal=USR2", job)  # as before its time ends
            until(lambda: "Restarts=1" in said(shared, "scontrol", "show", "job", job), "not queued again")
            until(lambda: "PENDING" in said(shared, "scontrol", "show", "job", job), "it does not end")
            # A start in the second of its end is refused. By itself Slurm waits two minutes.
            said(shared, "scontrol", "update", f"JobId={job}", "StartTime=now+10")
            until(lambda: job_of(shared) == job, "it does not run again")
            again = client.evaluate_many([Candidate(f"{NO_PROGRAM} {n}", "relu") for n in range(4, 8)])
            assert [each.status for each in again] == ["no_code"] * 4
        assert job_of(shared) == job
        assert PASSWORD not in written(shared.workspace / "generated")
        assert "ended 1 worker: judge-0" in shared.run("service", "workers", "--slurm", "--stop").stdout
        until(lambda: not standing(shared, "--slurm"), "the job is not cancelled")
    finally:
        user = str(os.geteuid())
        subprocess.run(["scancel", f"--user={user}"], env=shared.environment, check=False)
    assert shared.left_after(60).keys() <= daemons(shared)


def written(folder: Path) -> str:
    """All that was written below a folder."""
    files = [path for path in folder.rglob("*") if path.is_file()]
    assert files
    return "\n".join(path.read_bytes().decode(errors="replace") for path in files)


def daemons(program: Program) -> set[int]:
    """Slurm's own processes."""
    return {number for number, command in program.processes().items() if "slurm" in command.split(" ")[0]}
