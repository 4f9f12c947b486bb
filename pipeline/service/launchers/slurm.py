"""Workers as jobs of Slurm: queued again when they are preempted or their time ends.

sbatch itself reads the user's partition, account and longest time: `SBATCH_PARTITION`, `SBATCH_TIMELIMIT`.
"""

from __future__ import annotations

import os
import shlex
import subprocess
import sys

from kernelproof.choices import Role
from kernelproof.errors import MachineError
from kernelproof.service.launchers.model import WorkerCommand

NOTICE_S = 60
"""A job is told so long before its time ends."""
_SCRIPT = """#!/bin/bash
# USR2 comes to this shell before the job's time ends, TERM to all processes of a job that is to end.
trap 'ends=1; scontrol requeue "$SLURM_JOB_ID"' USR2
trap 'ends=1' TERM
while [ -z "$ends" ]; do
  {command} &
  wait $!; code=$?
  while kill -0 $! 2>/dev/null; do wait $!; code=$?; done  # a signal ended the wait, not the worker
  [ "$code" = 0 ] && break
  [ -n "$ends" ] || sleep 10
done
"""


class Slurm:
    """The launcher of a Slurm cluster. Jobs are known by their names: any machine of it can ask and stop."""

    judges = 1

    def __init__(self, command: WorkerCommand) -> None:
        self._command = command

    def start(self, name: str, role: Role) -> None:
        """Submits a job. Its log lies in the workspace, in `generated/workers/slurm`."""
        logs = self._command.place.generated / "workers" / "slurm"
        logs.mkdir(parents=True, exist_ok=True)
        words = [sys.executable, "-m", "kernelproof", "service", "workers", *self._command.options(role)]
        _output(
            *("sbatch", f"--job-name={self._command.cluster_name}-{name}", f"--output={logs}/{name}-%j.log"),
            *(f"--cpus-per-task={self._command.cpus}", "--open-mode=append", "--requeue"),
            *(f"--signal=B:USR2@{NOTICE_S}", "--export=ALL"),
            *(["--gpus-per-node=1"] if role is not Role.BUILD and _has_gpus() else []),
            script=_SCRIPT.format(command=shlex.join(words)),
            environment=self._command.environment,  # sbatch passes it on
        )

    def status(self) -> dict[str, str]:
        """As `Launcher` has it: Slurm's word for the state, the job, its node or the reason why it waits."""
        return {name: standing for name, _, standing in self._jobs()}

    def stop(self) -> None:
        """As `Launcher` has it: Slurm tells the processes of the jobs to end."""
        jobs = [number for _, number, _ in self._jobs()]
        if jobs:
            _output("scancel", *jobs)

    def _jobs(self) -> list[tuple[str, str, str]]:
        """Names of workers, numbers of jobs, and their states, of this database and this user."""
        jobs = []
        for line in _output("squeue", "--noheader", "--me", "--format=%j|%i|%T|%R").splitlines():
            name, job, state, where = line.split("|", 3)
            if name.startswith(f"{self._command.cluster_name}-"):
                worker = name.removeprefix(f"{self._command.cluster_name}-")
                jobs.append((worker, job, f"{state.lower()}  job {job}  {where}"))
        return sorted(jobs)


def _has_gpus() -> bool:
    """Whether Slurm has GPUs to give, in the partition that the user's variable names."""
    partition = os.environ.get("SBATCH_PARTITION")
    return "gpu" in _output("sinfo", "--noheader", "--format=%G", *(["-p", partition] if partition else []))


def _output(*command: str, script: str = "", environment: dict[str, str] | None = None) -> str:
    """The output of a command of Slurm, which reads `script`. Raises MachineError with its complaint."""
    given = {**os.environ, **(environment or {})}
    try:
        done = subprocess.run(command, env=given, input=script, capture_output=True, text=True, check=False)
    except FileNotFoundError:
        raise MachineError(f"Slurm's {command[0]} is not here; run this where jobs are submitted") from None
    if done.returncode:
        raise MachineError(f"{command[0]} fails: {' '.join(done.stderr.split())[:500]}")
    return done.stdout
