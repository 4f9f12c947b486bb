"""A real Slurm of one node on this machine, from the system's packages, in a temporary folder."""

from __future__ import annotations

import os
import secrets
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

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
    missing = [name for name in ("munged", "slurmctld", "slurmd", "sbatch") if program(name) is None]
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


def program(name: str) -> str | None:
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
            [program(name) or name, *map(str, command[1:])],
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
