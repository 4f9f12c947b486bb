"""Workers as named, detached actors of a Ray cluster. The launcher may go away; another finds the actors."""

from __future__ import annotations

import logging
import os
import socket
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from kernelproof.choices import Role
from kernelproof.errors import MachineError
from kernelproof.service.launchers.model import WorkerCommand
from kernelproof.service.supervisor import Supervisor
from kernelproof.workspace import WORKSPACE_VARIABLE

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
        """How the worker stands."""
        return f"{self._supervisor.status}  {self._where}"

    def end(self) -> None:
        """Ends the worker; what it had goes back into the queue."""
        self._supervisor.end()


class Ray:
    """The launcher of a Ray cluster. Each database has its own namespace of actors."""

    def __init__(self, command: WorkerCommand, address: str) -> None:
        """Joins the cluster. Raises MachineError where Ray is missing or no cluster answers."""
        if find_spec("ray") is None:
            raise MachineError("--ray needs Ray: pip install 'kernelproof[ray]', and run it again")
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
