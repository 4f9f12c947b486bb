"""Workers as jobs of Slurm, by submitit: queued again when they are preempted or their time ends."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any

from kernelproof.choices import Role
from kernelproof.devices.discovery import VISIBLE, gpus
from kernelproof.errors import MachineError
from kernelproof.service.launchers.keeping import Child, Keeper, environment_of, options_of
from kernelproof.service.launchers.model import Daemon, Standing, Wanted

MINUTES = 240
"""Of a job, where the user does not say. Then it is queued again."""
NOTICE_S = 60
"""A job is told so long before its time ends."""
TIMEOUTS = 1_000_000
"""How often a job is queued again because its time ended: always."""
_ENDED = {"COMPLETED", "COMPLETING", "CANCELLED", "FAILED", "TIMEOUT", "NODE_FAIL", "OUT_OF_MEMORY"}


@dataclass(frozen=True)
class Job:
    """The program of a job. The job's environment names the database: this is written to a file."""

    name: str
    options: tuple[str, ...]

    def __call__(self) -> None:
        """Is there as long as its worker is; starts it again when it fails."""
        gpu = next(iter(gpus()), None)
        environment = {VISIBLE: gpu.uuid} if gpu else {}
        keeper = Keeper(Child(self.name, self.options, environment), always=False)
        keeper.start()
        try:
            keeper.wait()
        finally:
            keeper.end()

    def checkpoint(self) -> Any:
        """The same job, to be queued again. The worker's evaluations are in the queue of the database."""
        from submitit.helpers import DelayedSubmission

        return DelayedSubmission(self)


class Slurm:
    """The launcher of a Slurm cluster. Jobs are known by their names: any machine of it can ask and stop."""

    def __init__(self, wanted: Wanted) -> None:
        """Raises MachineError where Slurm's commands or submitit are missing."""
        self._wanted, self._prefix = wanted, f"kernelproof-{wanted.key}-"
        missing = [name for name in ("sbatch", "squeue", "scancel", "srun") if shutil.which(name) is None]
        if missing:
            raise MachineError(f"Slurm's {', '.join(missing)} is not here; run this where jobs are submitted")
        if find_spec("submitit") is None:
            raise MachineError("--slurm needs submitit: pip install 'kernelproof[slurm]', and run it again")

    def start(self) -> Sequence[Standing]:
        """Submits the jobs that are neither running nor waiting."""
        there = {each.name for _, each in self._jobs() if each.state != "ended"}
        for daemon in self._wanted.daemons(1, 1 if self._wanted.artefacts else 0):
            if daemon.name not in there:
                self._submit(daemon)
        return self.status()

    def status(self) -> Sequence[Standing]:
        """The jobs that Slurm has of this database and this user."""
        return [each for _, each in self._jobs()]

    def stop(self) -> Sequence[Standing]:
        """Cancels them: their workers are told to end, and end in order."""
        jobs = [(number, each) for number, each in self._jobs() if each.state != "ended"]
        if jobs:
            _said("scancel", *(number for number, _ in jobs))
        return [each for _, each in jobs]

    def _submit(self, daemon: Daemon) -> None:
        from submitit import SlurmExecutor
        from submitit.core.utils import FailedJobError, FailedSubmissionError

        os.environ.update(environment_of(self._wanted))  # sbatch passes it on
        executor = SlurmExecutor(self._wanted.place.generated / "workers" / "slurm", max_num_timeout=TIMEOUTS)
        executor.update_parameters(
            job_name=self._prefix + daemon.name,
            time=self._wanted.minutes or MINUTES,
            cpus_per_task=self._wanted.cpus,
            signal_delay_s=NOTICE_S,
            stderr_to_stdout=True,
            additional_parameters={"export": "ALL", "requeue": True},
            **({"partition": self._wanted.partition} if self._wanted.partition else {}),
            **({"gpus_per_node": 1} if daemon.role is not Role.BUILD and self._has_gpus() else {}),
        )
        try:
            executor.submit(Job(daemon.name, tuple(options_of(self._wanted, daemon.role))))
        except (FailedJobError, FailedSubmissionError) as error:
            raise MachineError(f"Slurm does not take the job: {' '.join(str(error).split())[:500]}") from None

    def _has_gpus(self) -> bool:
        """Whether Slurm has GPUs to give, in the partition that is asked for."""
        where = ["--partition", self._wanted.partition] if self._wanted.partition else []
        return "gpu" in _said("sinfo", "--noheader", "--format=%G", *where)

    def _jobs(self) -> list[tuple[str, Standing]]:
        """Numbers of jobs, and how their workers stand."""
        found = []
        for line in _said("squeue", "--noheader", "--me", "--format=%i|%j|%T|%N|%r").splitlines():
            number, name, state, node, reason = line.split("|", 4)
            if name.startswith(self._prefix):
                found.append((number, self._standing(number, name, state, node, reason)))
        return sorted(found, key=lambda each: each[1].name)

    def _standing(self, number: str, name: str, state: str, node: str, reason: str) -> Standing:
        seen = "running" if state == "RUNNING" else "ended" if state in _ENDED else "waiting"
        where = f"job {number}{f' on {node}' if node else ''}"
        known = reason not in ("None", "")
        note = f"{state.lower()}{f': {reason}' if known else ''}" if seen == "waiting" else ""
        return Standing(name.removeprefix(self._prefix), seen, where, note=note)


def _said(*command: str) -> str:
    """The output of a command of Slurm. Raises MachineError with its complaint."""
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise MachineError(f"{command[0]} fails: {' '.join(done.stderr.split())[:300]}")
    return done.stdout
