"""Running the service: the HTTP process, and workers as processes of their own."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path

from kernelproof.choices import Role
from kernelproof.db.store import Store, open_store
from kernelproof.errors import MachineError, UsageError, require_packages
from kernelproof.jobs.judge import places as usual_places
from kernelproof.listening import LOOPBACK, in_url, is_local, listening_at
from kernelproof.problems import open_suite
from kernelproof.report.plain import say
from kernelproof.service.artefacts import ArtefactStore, open_artefacts
from kernelproof.service.gpu_lease import GpuLease
from kernelproof.service.launchers import Supervisor, WorkerCommand, judged_gpus, supervise_judges
from kernelproof.service.worker import BuildWorker, Daemon, JudgeWorker, Work, backends_here, buildable
from kernelproof.types import VerifySettings
from kernelproof.verifier.devices.discovery import gpus
from kernelproof.verifier.engine.core_sharing import builds_at_once
from kernelproof.verifier.engine.engine import Engine
from kernelproof.wording import counted
from kernelproof.workspace import Workspace

JUDGE_PLACES = 4
"""One is measured; the others are fetched and got ready meanwhile."""


@dataclass(frozen=True)
class Serving:
    place: Workspace
    suite: Path | None
    settings: VerifySettings
    """The defaults of requests."""
    most: int
    most_losses: int
    references: bool
    live: bool | None = None
    """Whether the results are shown below LIVE; None: where no token is asked for, and what pages need is
    installed."""


def serve(serving: Serving, host: str, port: int, *, names: list[str], worker: bool) -> None:
    """Serves until it is interrupted.

    Raises UsageError where it would be open to everybody, MachineError where the address cannot be had.
    """
    from kernelproof.service.app import Server, are_possible, live_pages, make_app
    from kernelproof.service.schemas import Reader
    from kernelproof.service.state import Service, Watch

    with open_store(serving.place.database) as store:
        open_to_all = not store.service.callers.count()
        if open_to_all and not is_local(host):
            raise UsageError(
                f"--host {host} lets others in, and no caller has a token: make one first with kernelproof "
                "callers add NAME, or listen at 127.0.0.1"
            )
        reader = Reader(
            open_suite(serving.suite), serving.settings, serving.references, lock=threading.Lock()
        )
        service = Service(store, reader, Watch(store), serving.most, serving.most_losses)
        shows = (open_to_all and are_possible()) if serving.live is None else serving.live
        with listening_at(host, port) as listening, ExitStack() as stack:
            live = stack.enter_context(live_pages(serving.place.database)) if shows else None
            at = listening.getsockname()[1]
            shown = in_url(host)
            names = [*LOOPBACK, host, *names]
            app = make_app(service, hosts=names, open_to_all=open_to_all, live=live)
            server = Server(app, service.watch)

            def end(*_: object) -> None:
                server.should_exit = True

            # For a signal that comes before uvicorn listens to signals; and uvicorn raises the signal that
            # ended it once more, when the worker is still to be ended.
            for number in (signal.SIGINT, signal.SIGTERM):
                signal.signal(number, end)
            with _workers(serving) if worker else nullcontext():
                who = "everybody on this machine" if open_to_all else "callers with a token"
                say(f"http://{shown}:{at} serves evaluations to {who}; Ctrl-C ends it")
                server.run(sockets=[listening])


def work(command: WorkerCommand, *, role: Role = Role.ALL, until_input_ends: bool = False) -> None:
    """Is a worker, builder or judge until SIGINT or SIGTERM; on a machine with several GPUs, keeps one for
    each. Raises UsageError, MachineError, StoreError.

    `until_input_ends`: also until standard input ends, as it does when the process that started it is gone.
    """
    place, artefacts = command.place, command.artefacts
    if artefacts is None and role is not Role.ALL:
        raise UsageError(
            f"--role {role} needs --artefacts: a directory that builders and judges share, or an address "
            "such as s3://BUCKET/FOLDER"
        )
    published = open_artefacts(artefacts) if artefacts is not None else None
    stop = threading.Event()
    if until_input_ends:
        threading.Thread(target=_stop_with_input, args=(stop,), daemon=True).start()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stop.set())
    if role is not Role.BUILD and len(judged_gpus()) > 1:
        open_store(place.database).close()  # its trouble is told once
        supervise_judges(command, role, stop)
        return
    with open_store(place.database) as store:
        gpu_lease = GpuLease(store, gpus()[0]) if gpus() and role is not Role.BUILD else None
        try:
            while not stop.is_set() and (gpu_lease is None or gpu_lease.enter(stop, say)):
                with Engine(unsafe=command.unsafe, many=True) as engine:
                    task = _task(role, store, engine, published, stop, gpu_lease)
                    _daemon(task, store, command.places, stop, gpu_lease).run()
        finally:
            if gpu_lease is not None:
                gpu_lease.leave()


def _daemon(
    task: Work, store: Store, places: int, stop: threading.Event, gpu_lease: GpuLease | None
) -> Daemon:
    role = task.capabilities.role
    daemon = Daemon(store, task, places or _places(role), stop=stop)
    who = {Role.ALL: "worker", Role.BUILD: "builder", Role.JUDGE: "judge"}[role]
    on = f" on {gpu_lease.gpu}" if gpu_lease is not None else ""
    backends = ", ".join(task.capabilities.backends)
    say(f"{who} for {backends} with {counted(daemon.places, 'place')}{on}; Ctrl-C ends it")
    return daemon


def _task(
    role: Role,
    store: Store,
    engine: Engine,
    published: ArtefactStore | None,
    stop: threading.Event,
    gpu_lease: GpuLease | None,
) -> Work:
    """Raises MachineError where this machine cannot do such work."""
    if role is Role.BUILD:
        assert published is not None
        found = buildable(engine.builds.toolchain)
        if not found:
            raise MachineError("this machine has no compiler for any backend; see kernelproof doctor")
        return BuildWorker(store, engine, found, published, stop)
    found = backends_here()
    if not found:
        raise MachineError("this machine can run no backend; see kernelproof doctor")
    return JudgeWorker(store, engine, found, gpu_lease, published, stop, role)


def _places(role: Role) -> int:
    """Evaluations that a daemon has at once: as many as keep compilers or a device at work. A judge has few
    more than it measures, so that other judges get theirs."""
    if role is Role.BUILD:
        return builds_at_once(len(os.sched_getaffinity(0)))[1]
    return JUDGE_PLACES if role is Role.JUDGE else usual_places()


def _stop_with_input(stop: threading.Event) -> None:
    # Not sys.stdin, whose lock Python wants when it ends: it would abort.
    while os.read(0, 65_536):
        pass
    stop.set()


@contextmanager
def _workers(serving: Serving) -> Iterator[None]:
    """A worker as a child process, started again when it ends before the block does."""
    command = WorkerCommand(serving.place, unsafe=serving.settings.unsafe)
    supervisor = Supervisor("the worker", command.options(Role.ALL), command.environment)
    supervisor.start()
    try:
        yield
    finally:
        supervisor.end()


def require() -> None:
    """Raises MachineError that says how to install what is missing."""
    require_packages("the service", "service", "fastapi", "uvicorn", "prometheus_client")
