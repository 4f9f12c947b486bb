"""Starting workers: their command and names, a child process that is started again whenever it ends, one for
each GPU of this machine, and the launchers of clusters.

`Ray` makes named, detached actors: the launcher may go away, and another finds them. `Slurm` submits jobs,
which are queued again when they are preempted or their time ends; sbatch itself reads the user's partition,
account and longest time: `SBATCH_PARTITION`, `SBATCH_TIMELIMIT`. Work comes to all workers from the queue in
the database, so a launcher that is lost loses none.
"""

from __future__ import annotations

import logging
import os
import shlex
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Protocol

from kernelproof.choices import Role
from kernelproof.errors import MachineError, UsageError, install_command
from kernelproof.hashing import sha256_text
from kernelproof.jobs.judge import places as usual_places
from kernelproof.report.plain import say
from kernelproof.service.artefacts import is_address
from kernelproof.verifier.devices.discovery import VISIBLE, Gpu, gpus
from kernelproof.workspace import DATABASE_VARIABLE, WORKSPACE_VARIABLE, Workspace, address

WORKERS = "-P", "-m", "kernelproof", "service", "workers"
"""-P: nothing is imported from where the user stands."""
STORE_VARIABLES = ("AWS_", "FSSPEC_")
"""Beginnings of variables that say where an artefact store is, and hold the credentials for it."""


@dataclass(frozen=True)
class WorkerCommand:
    place: Workspace
    places: int = 0
    """Evaluations that a worker has at once; 0: as many as its cores serve."""
    artefacts: str | None = None
    """Where builders publish: a directory, or an address that fsspec knows."""
    unsafe: bool = False
    cpus: int = 1
    """CPUs to ask a cluster for, for each worker."""

    def options(self, role: Role) -> list[str]:
        """Of `kernelproof service workers`. Everybody on a machine sees them: no secret is among them."""
        words = [] if role is Role.ALL else ["--role", role]
        words += ["--places", str(self.places)] if self.places else []
        words += ["--artefacts", self.artefacts] if self.artefacts else []
        return [*words, *(["--unsafe"] if self.unsafe else [])]

    @property
    def environment(self) -> dict[str, str]:
        """Where the database is, with its password; how S3 is reached, where artefacts lie at an address."""
        away = self.artefacts is not None and is_address(self.artefacts)
        passed_on = {
            name: os.environ[name] for name in os.environ if away and name.startswith(STORE_VARIABLES)
        }
        place = {DATABASE_VARIABLE: address(self.place.database), WORKSPACE_VARIABLE: str(self.place.root)}
        return {**place, **passed_on}

    @property
    def cluster_name(self) -> str:
        """The name by which a cluster knows the workers of this database."""
        return f"kernelproof-{sha256_text(str(self.place.database))[:8]}"

    def roles(self, judges: int, builders: int) -> dict[str, Role]:
        """The names and roles of so many workers: `builder-0`, `judge-1`.

        Raises UsageError where there are none, and where builders and judges would not meet.
        """
        if not judges + builders:
            raise UsageError("--judges 0 --builders 0 starts nothing; give one of them a number above 0")
        if builders and self.artefacts is None:
            raise UsageError(
                "builders need --artefacts: a directory that builders and judges share, or an address such "
                "as s3://BUCKET/FOLDER; without builders, --builders 0, judges build as well"
            )
        judging = Role.JUDGE if builders else Role.ALL
        names = {f"builder-{number}": Role.BUILD for number in range(builders)}
        return names | {f"judge-{number}": judging for number in range(judges)}


class Launcher(Protocol):
    """The workers of one database in a cluster, whoever started them. Methods raise MachineError."""

    judges: int

    def start(self, name: str, role: Role) -> None:
        """Starts one worker, which is started again whenever it fails or its machine is lost."""

    def status(self) -> dict[str, str]:
        """How each worker stands: its name, and `running` or why it waits."""

    def stop(self) -> None:
        """Ends all workers. Their evaluations go back into the queue."""


PATIENCE_S = 10.0
"""Seconds that a worker has to end in order before it is killed."""
PAUSE_S, PAUSES_S = 1.0, 60.0
"""Seconds between a worker's unexpected end and its restart: at first, and at most; it doubles."""
_LOOK_S = 0.2


class Supervisor:
    """Restarts one worker whenever it ends, from `start` to `end`."""

    def __init__(self, name: str, options: Sequence[str], environment: Mapping[str, str]) -> None:
        """`options`: of `kernelproof service workers`. `environment`: beside that of this process; since it
        may hold the database's password, it is never on a command line."""
        self._name, self._options, self._environment = name, options, environment
        self._over = threading.Event()
        self._process: subprocess.Popen[bytes] | None = None
        self._failure = self._last = ""
        self._thread = threading.Thread(target=self._supervise, name=f"supervisor of {name}")

    def start(self) -> None:
        self._thread.start()

    def request_end(self) -> None:
        """Has the worker end, without waiting for it."""
        self._over.set()

    def end(self) -> None:
        """Ends the worker: in order, and after PATIENCE_S by force."""
        self.request_end()
        self._thread.join()

    @property
    def status(self) -> str:
        """`running` with the process, or `waiting` with the last failure."""
        process = self._process
        if process is not None and process.poll() is None:
            return f"running  process {process.pid}"
        return f"waiting  {self._failure}"

    def _supervise(self) -> None:
        pause = PAUSE_S
        while not self._over.is_set():
            began = time.monotonic()
            process = self._process = self._start_process()
            reader = threading.Thread(target=self._forward_stderr, args=(process,), daemon=True)
            reader.start()
            while process.poll() is None and not self._over.wait(_LOOK_S):
                pass
            if self._over.is_set():
                _end(process)
                break
            reader.join(PAUSE_S)
            self._failure = f"it ended with {process.returncode}: {self._last}"
            pause = PAUSE_S if time.monotonic() - began > PAUSES_S else min(PAUSES_S, pause * 2)
            again = f"kernelproof: {self._name} ended with {process.returncode}; it starts again"
            print(again, file=sys.stderr, flush=True)
            self._over.wait(pause)

    def _start_process(self) -> subprocess.Popen[bytes]:
        """A process that ends when its standard input ends, as it does when this process is gone."""
        source = str(Path(__file__).parents[2])  # the copy that runs here: an actor of Ray has others
        paths = [source, *filter(None, [os.environ.get("PYTHONPATH")])]
        return subprocess.Popen(
            [sys.executable, *WORKERS, "--until-input-ends", *self._options],
            env={**os.environ, "PYTHONPATH": os.pathsep.join(paths), **self._environment},
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            start_new_session=True,  # Ctrl-C reaches this process alone, which ends the worker in order
        )

    def _forward_stderr(self, process: subprocess.Popen[bytes]) -> None:
        """Forwards a worker's standard error, and remembers the last line."""
        assert process.stderr is not None
        for line in process.stderr:
            text = line.decode(errors="replace").rstrip()
            self._last = text or self._last
            print(text, file=sys.stderr, flush=True)


def _end(process: subprocess.Popen[bytes]) -> None:
    """Ends a worker in order; after PATIENCE_S by force, with what it started."""
    process.terminate()
    try:
        process.wait(PATIENCE_S)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def judged_gpus() -> tuple[Gpu, ...]:
    """The GPUs that get a judge: the first one and all others of its name. The judge of one that is set aside
    waits until it is put back.

    Where there are others, `CUDA_VISIBLE_DEVICES` chooses.
    """
    return tuple(gpu for gpu in gpus() if gpu.name == gpus()[0].name)


def supervise_judges(command: WorkerCommand, role: Role, stop: threading.Event) -> None:
    """Supervises a judge for each GPU until `stop` is set; then all end.

    `command.places`: of each; where they are 0, those that build as well share what the cores serve.
    """
    judged = judged_gpus()
    if role is Role.ALL and not command.places:
        command = replace(command, places=max(2, usual_places() // len(judged)))
    options, environment = command.options(role), command.environment
    supervisors = [
        Supervisor(f"judge-{number}", options, environment | {VISIBLE: gpu.uuid})
        for number, gpu in enumerate(judged)
    ]
    try:
        for supervisor in supervisors:
            supervisor.start()
        say(f"a judge for each of {', '.join(map(str, judged))}; Ctrl-C ends them")
        stop.wait()
    finally:
        for supervisor in supervisors:
            supervisor.request_end()
        for supervisor in supervisors:
            supervisor.end()


ANSWER_S = 15.0
"""Actors that do not answer in so many seconds wait for a place, or for a node that is lost."""
CONNECT_S = 10.0


class Host:
    """The actor: it keeps one worker on the node that Ray gave it. The worker sees the GPU of the actor."""

    def __init__(self, name: str, options: Sequence[str], environment: dict[str, str]) -> None:
        import ray

        if not Path(environment[WORKSPACE_VARIABLE]).is_dir():  # results go to the server: any directory does
            environment = {**environment, WORKSPACE_VARIABLE: str(Path.cwd())}
        self._where = f"node {ray.util.get_node_ip_address()}"
        self._supervisor = Supervisor(name, options, environment)
        self._supervisor.start()

    def status(self) -> str:
        return f"{self._supervisor.status}  {self._where}"

    def end(self) -> None:
        """Ends the worker; what it had goes back into the queue."""
        self._supervisor.end()


class Ray:
    """The launcher of a Ray cluster. Each database has its own namespace of actors."""

    def __init__(self, command: WorkerCommand, address: str) -> None:
        """Joins the cluster. Raises MachineError where Ray is missing or no cluster answers."""
        if find_spec("ray") is None:
            raise MachineError(f"--ray needs Ray: {install_command('ray')}, and run it again")
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
        import ray

        self._ray, self._command = ray, command
        try:
            _require_listener(address)
            ray.init(
                address=address,
                namespace=command.cluster_name,
                ignore_reinit_error=True,
                log_to_driver=False,
                logging_level=logging.ERROR,
            )
        except (OSError, RuntimeError, ValueError) as error:
            raise MachineError(
                f"no Ray cluster answers at {address}: {_line(error)}; "
                "begin one with ray start --head, or join one with ray start --address"
            ) from None
        nodes = [node for node in ray.nodes() if node["Alive"]]
        self._gpus = int(sum(node["Resources"].get("GPU", 0) for node in nodes))
        self.judges = self._gpus or len(nodes)

    def start(self, name: str, role: Role) -> None:
        """Makes an actor. Ray starts it elsewhere when its node is lost."""
        actor = self._ray.remote(Host).options(
            name=name,
            lifetime="detached",
            get_if_exists=True,  # two launchers may start at once
            num_cpus=self._command.cpus,
            num_gpus=int(self._gpus > 0 and role is not Role.BUILD),
            max_restarts=-1,
            max_concurrency=4,  # it answers while it ends
            scheduling_strategy="SPREAD",
        )
        actor.remote(name, self._command.options(role), self._command.environment)

    def status(self) -> dict[str, str]:
        """As `Launcher` has it; an actor that says nothing in ANSWER_S seconds waits for a place."""
        answers = {name: actor.status.remote() for name, actor in self._actors().items()}
        if answers:
            self._ray.wait(list(answers.values()), num_returns=len(answers), timeout=ANSWER_S)
        return {name: self._answer(answer) for name, answer in answers.items()}

    def stop(self) -> None:
        """As `Launcher` has it: the workers end in order, then the actors."""
        actors = list(self._actors().values())
        ends = [actor.end.remote() for actor in actors]
        if ends:
            self._ray.wait(ends, num_returns=len(ends), timeout=ANSWER_S)
        for actor in actors:
            self._ray.kill(actor, no_restart=True)

    def _actors(self) -> dict[str, Any]:
        """The actors of this database, by their names."""
        listed = self._ray.util.list_named_actors(all_namespaces=True)
        names = [each["name"] for each in listed if each["namespace"] == self._command.cluster_name]
        return {name: self._ray.get_actor(name) for name in sorted(names)}

    def _answer(self, answer: Any) -> str:
        try:
            return str(self._ray.get(answer, timeout=0))
        except self._ray.exceptions.GetTimeoutError:
            return "waiting  for a node with a place"
        except self._ray.exceptions.RayError as error:
            return f"ended  {_line(error)}"


def _require_listener(address: str) -> None:
    """Raises OSError where nothing listens at `HOST:PORT`: Ray itself would try for minutes."""
    host, _, port = address.rpartition(":")
    if host and port.isdecimal() and "/" not in host:
        socket.create_connection((host, int(port)), CONNECT_S).close()


def _line(error: Exception) -> str:
    return next(iter(str(error).strip().splitlines()), "it says nothing").partition(". ")[0][:200]


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
        words = [sys.executable, *WORKERS, *self._command.options(role)]
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
