"""Workers as named, detached actors of a Ray cluster. The launcher may go away; another finds the actors."""

from __future__ import annotations

import logging
import os
import socket
from collections.abc import Sequence
from dataclasses import asdict
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from kernelproof.choices import Role
from kernelproof.devices.discovery import VISIBLE, gpus
from kernelproof.errors import MachineError
from kernelproof.service.launchers.keeping import Child, Keeper, environment_of, options_of
from kernelproof.service.launchers.model import Daemon, Standing, Wanted
from kernelproof.workspace import WORKSPACE_VARIABLE

ANSWER_S = 30.0
"""Actors that do not answer in so many seconds wait for a place, or for a node that is lost."""

CONNECT_S = 10.0


class Host:
    """The actor: it keeps one worker on the node, and on the GPU, that Ray gave it."""

    def __init__(self, name: str, options: Sequence[str], environment: dict[str, str], on_gpu: bool) -> None:
        import ray

        given = dict(environment)
        if not Path(given[WORKSPACE_VARIABLE]).is_dir():  # results go to the server: any directory does
            given[WORKSPACE_VARIABLE] = str(Path.cwd())
        gpu = next(iter(gpus()), None) if on_gpu else None
        if gpu is not None:  # Ray gives a number; the UUID means the same GPU to every process
            given[VISIBLE] = gpu.uuid
        self._node = ray.util.get_node_ip_address()
        self._keeper = Keeper(Child(name, options, given), gpu.uuid if gpu else "")
        self._keeper.start()

    def standing(self) -> dict[str, str]:
        """How the worker stands."""
        found = self._keeper.standing
        return {**asdict(found), "where": f"node {self._node}{f', {found.where}' if found.where else ''}"}

    def end(self) -> None:
        """Ends the worker; what it had goes back into the queue."""
        self._keeper.end()


class Ray:
    """The launcher of a Ray cluster. Each database has its own namespace of actors."""

    def __init__(self, wanted: Wanted, address: str) -> None:
        """Joins the cluster. Raises MachineError where Ray is missing or no cluster answers."""
        if find_spec("ray") is None:
            raise MachineError("--ray needs Ray: pip install 'kernelproof[ray]', and run it again")
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
        import ray

        self._ray, self._wanted = ray, wanted
        self._namespace = f"kernelproof-{wanted.key}"
        try:
            _require_listener(address)
            ray.init(
                address=address,
                namespace=self._namespace,
                ignore_reinit_error=True,
                log_to_driver=False,
                logging_level=logging.ERROR,
            )
        except (OSError, RuntimeError, ValueError) as error:
            raise MachineError(
                f"no Ray cluster answers at {address}: {_line(error)}; "
                "begin one with ray start --head, or join one with ray start --address"
            ) from None

    def start(self) -> Sequence[Standing]:
        """Makes the actors that are not there. Ray starts them elsewhere when their node is lost."""
        nodes = [node for node in self._ray.nodes() if node["Alive"]]
        devices = int(sum(node["Resources"].get("GPU", 0) for node in nodes))
        there = set(self._names())
        for daemon in self._wanted.daemons(
            devices or len(nodes), len(nodes) if self._wanted.artefacts else 0
        ):
            if daemon.name not in there:
                self._make(daemon, on_gpu=bool(devices) and daemon.role is not Role.BUILD)
        return self.status()

    def status(self) -> Sequence[Standing]:
        """The answers of the actors; one that says nothing in ANSWER_S seconds waits for a place."""
        asked = {name: self._actor(name).standing.remote() for name in self._names()}
        self._ray.wait(list(asked.values()), num_returns=len(asked), timeout=ANSWER_S) if asked else None
        return [self._answer(name, answer) for name, answer in asked.items()]

    def stop(self) -> Sequence[Standing]:
        """Has the workers end in order, then ends the actors."""
        standing = self.status()
        actors = [self._actor(each.name) for each in standing]
        ends = [actor.end.remote() for actor in actors]
        if ends:
            self._ray.wait(ends, num_returns=len(ends), timeout=ANSWER_S)
        for actor in actors:
            self._ray.kill(actor, no_restart=True)
        return standing

    def _names(self) -> list[str]:
        """Of the actors of this database."""
        found = self._ray.util.list_named_actors(all_namespaces=True)
        return sorted(each["name"] for each in found if each["namespace"] == self._namespace)

    def _actor(self, name: str) -> Any:
        return self._ray.get_actor(name, namespace=self._namespace)

    def _make(self, daemon: Daemon, *, on_gpu: bool) -> None:
        made = self._ray.remote(Host).options(
            name=daemon.name,
            namespace=self._namespace,
            lifetime="detached",
            get_if_exists=True,  # two launchers may start at once
            num_cpus=self._wanted.cpus,
            num_gpus=1 if on_gpu else 0,
            max_restarts=-1,
            max_concurrency=4,  # it answers while it ends
            scheduling_strategy="SPREAD",
        )
        made.remote(daemon.name, options_of(self._wanted, daemon.role), environment_of(self._wanted), on_gpu)

    def _answer(self, name: str, answer: Any) -> Standing:
        try:
            return Standing(**self._ray.get(answer, timeout=0))
        except self._ray.exceptions.GetTimeoutError:
            return Standing(name, "waiting", note="for a node with a place")
        except self._ray.exceptions.RayError as error:
            return Standing(name, "ended", note=_line(error))


def _require_listener(address: str) -> None:
    """Raises OSError where nothing listens at `HOST:PORT`: Ray itself would try for minutes."""
    host, _, port = address.rpartition(":")
    if host and port.isdecimal() and "/" not in host:
        socket.create_connection((host, int(port)), CONNECT_S).close()


def _line(error: Exception) -> str:
    return next(iter(str(error).strip().splitlines()), "it says nothing").partition(". ")[0][:200]
