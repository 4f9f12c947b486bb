"""Workers as jobs of a real Slurm of one node: submitted, queued again, cancelled. Left out without Slurm."""

from __future__ import annotations

import os
import re
import secrets
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from kernelproof.client import Candidate, Client
from tests.cli.program import Program
from tests.postgres import PASSWORD, PostgresServer
from tests.service.conftest import NO_PROGRAM, serving
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


CONFIGURATION = """
ClusterName=tests
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={controller}
SlurmdPort={node}
SlurmUser=root
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket
CredType=cred/munge
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
SwitchType=switch/none
MpiDefault=none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SlurmdParameters=config_overrides
ReturnToService=2
JobRequeue=1
KillWait=30
NodeName={host} NodeAddr=127.0.0.1 CPUs=4 State=UNKNOWN
PartitionName=main Nodes={host} Default=YES MaxTime=INFINITE State=UP
"""
PATIENCE_S = 60.0


@contextmanager
def slurm() -> Iterator[dict[str, str]]:
    """What Slurm's commands need in their environment. Skips the test where Slurm does not run."""
    missing = [name for name in ("munged", "slurmctld", "slurmd", "sbatch") if daemon_path(name) is None]
    if missing or os.geteuid():
        pytest.skip(f"no Slurm here: {', '.join(missing) or 'it needs root'}")
    folder = Path(tempfile.mkdtemp(prefix="kp-slurm-", dir="/tmp"))
    daemons: list[subprocess.Popen[bytes]] = []
    environment = {"SLURM_CONF": str(folder / "slurm.conf")}
    try:
        configure(folder)
        munge = [f"--{name}={folder}/munge.{name.partition('-')[0]}" for name in MUNGE_FILES]
        for command in (
            ["munged", "--foreground", "--force", *munge],
            ["slurmctld", "-D", "-f", folder / "slurm.conf"],
            ["slurmd", "-D", "-f", folder / "slurm.conf"],
        ):
            daemons.append(start(command, folder, environment))
        wait_for_node(environment, folder)
        yield environment
    finally:
        for daemon in reversed(daemons):
            daemon.terminate()
            try:
                daemon.wait(20)
            except subprocess.TimeoutExpired:
                daemon.kill()
                daemon.wait()
        shutil.rmtree(folder, ignore_errors=True)


MUNGE_FILES = ("socket", "key-file", "pid-file", "log-file", "seed-file")


def daemon_path(name: str) -> str | None:
    """Where a daemon lies: not every user has /usr/sbin on the path."""
    return shutil.which(name, path=f"{os.environ.get('PATH', '')}:/usr/sbin:/usr/local/sbin")


def configure(folder: Path) -> None:
    """Writes the key and the configuration."""
    (folder / "munge.key").write_bytes(secrets.token_bytes(128))
    (folder / "munge.key").chmod(0o600)
    for name in ("state", "spool"):
        (folder / name).mkdir()
    ports = [socket.create_server(("127.0.0.1", 0)) for _ in range(2)]
    controller, node = (each.getsockname()[1] for each in ports)
    for each in ports:
        each.close()
    text = CONFIGURATION.format(
        host=socket.gethostname().partition(".")[0], controller=controller, node=node, folder=folder
    )
    (folder / "slurm.conf").write_text(text)


def start(command: list[object], folder: Path, environment: dict[str, str]) -> subprocess.Popen[bytes]:
    """Starts a daemon, which complains into a file."""
    name = str(command[0])
    with (folder / f"{name}.said").open("wb") as said:
        return subprocess.Popen(
            [daemon_path(name) or name, *map(str, command[1:])],
            env={**os.environ, **environment},
            stdin=subprocess.DEVNULL,
            stdout=said,
            stderr=said,
            start_new_session=True,
        )


def wait_for_node(environment: dict[str, str], folder: Path) -> None:
    """Until the node takes jobs. Skips the test where it does not."""
    deadline = time.monotonic() + PATIENCE_S
    while True:
        done = subprocess.run(
            ["sinfo", "--noheader", "--format=%T"],
            env={**os.environ, **environment},
            capture_output=True,
            text=True,
            check=False,
        )
        if done.stdout.strip() == "idle":
            return
        if time.monotonic() > deadline:
            logs = [file.read_text(errors="replace")[-300:] for file in folder.glob("*.log")]
            pytest.skip(f"Slurm does not start here: {done.stdout} {done.stderr} {logs}")
        time.sleep(0.2)
