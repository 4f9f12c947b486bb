"""`kernelproof service`: the evaluation service over HTTP, what verifies for it, and who may use it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from kernelproof.choices import CPUS, LOSSES, PORT, QUEUE, WORKER_PLACES, WORKERS, Role
from kernelproof.cli.commands import CommandLine
from kernelproof.cli.declaring import Argument, Option
from kernelproof.cli.options import (
    JsonOption,
    StorageOptions,
    SuiteOption,
    UnsafeOption,
    VerifyOptions,
    refuse_several,
)
from kernelproof.errors import NothingStored, UsageError
from kernelproof.report.plain import json_line, say
from kernelproof.wording import counted

if TYPE_CHECKING:
    from kernelproof.db.gpus import Gpus, StoredGpu
    from kernelproof.db.service import ServiceData
    from kernelproof.service.launchers import Launcher, WorkerCommand
    from kernelproof.workspace import DatabasePlace

service_app = CommandLine(help="Serve evaluations over HTTP: the API, its workers, GPUs and callers.")
callers_app = CommandLine(help="Callers of the evaluation service, and their tokens.")

NameArgument = Annotated[str, Argument("The caller's name.", metavar="NAME")]
HostOption = Annotated[
    str,
    Option("Address to listen at; another than this machine's own needs callers with tokens.", parser=str),
]


@service_app.command()
def api(
    *,
    host: HostOption = "127.0.0.1",
    port: Annotated[int, Option("Port to listen at; 0: one that is free.", PORT)] = 8400,
    worker: Annotated[
        bool, Option("Start a worker on this machine; without, start some with workers.")
    ] = True,
    max_queue: Annotated[int, Option("Evaluations that may wait or run at once.", QUEUE)] = 10_000,
    max_losses: Annotated[
        int,
        Option(
            "An evaluation whose workers were killed so often, or fell silent, ends as a failure.", LOSSES
        ),
    ] = 5,
    accept_references: Annotated[
        bool, Option("Take problems from callers: they run with your rights, outside the sandbox.")
    ] = False,
    allow_host: Annotated[
        list[str] | None,
        Option("A name by which the service is called, besides --host; may be repeated.", parser=str),
    ] = None,
    live: Annotated[
        bool | None,
        Option("Show all stored results in browsers at /live. Left out: only while no caller has a token."),
    ] = None,
    options: VerifyOptions,
    suite: SuiteOption = None,
    storage: StorageOptions,
) -> None:
    """Serve evaluations over HTTP: candidates in, verdicts out. The options are the defaults of requests.

    It needs the packages of the extra service, and says how to install them.
    """
    from kernelproof.service.serving import require

    require()
    from kernelproof.service.serving import Serving, serve

    serving = Serving(
        place=storage.create_workspace(),
        suite=suite,
        settings=options.settings([]),
        most=max_queue,
        most_losses=max_losses,
        references=accept_references,
        live=live,
    )
    serve(serving, host, port, names=allow_host or [], worker=worker)


@dataclass(frozen=True)
class LauncherOptions:
    """Where workers are started, and how many."""

    ray: Annotated[
        str | None,
        Option(
            "Start workers in a Ray cluster, a judge for each GPU; auto: this machine's cluster.",
            metavar="<auto|address>",
        ),
    ] = None
    slurm: Annotated[bool, Option("Submit workers as jobs of Slurm.")] = False
    status: Annotated[bool, Option("Say how the cluster's workers stand.")] = False
    stop: Annotated[bool, Option("End the cluster's workers.")] = False
    judges: Annotated[
        int | None, Option("Workers that judge [default: one for each GPU; Slurm: one].", WORKERS)
    ] = None
    builders: Annotated[
        int | None, Option("Workers that only build; 0: judges build, too [default: 0].", WORKERS)
    ] = None
    cpus: Annotated[
        int | None, Option("CPUs to ask the cluster for, for each worker [default: 1].", CPUS)
    ] = None

    @property
    def in_cluster(self) -> bool:
        """Whether any of these options is given. Raises UsageError for those that do not fit together."""
        clusters = [f"--{name}" for name in ("ray", "slurm") if getattr(self, name)]
        refuse_several(clusters)
        refuse_several([f"--{name}" for name in ("status", "stop") if getattr(self, name)])
        for name in ("status", "stop", "judges", "builders", "cpus"):
            value = getattr(self, name)
            if not clusters and value is not None and value is not False:
                raise UsageError(f"--{name} belongs to --ray or --slurm; give one of them")
        return bool(clusters)

    def launch(self, command: WorkerCommand) -> None:
        """Starts workers, says how they stand, or ends them. Raises UsageError, MachineError."""
        launcher = self._launcher(command)
        standing = launcher.status()
        if self.stop:
            launcher.stop()
            say(f"ended {counted(len(standing), 'worker')}: {', '.join(standing)}".removesuffix(": "))
            return
        if not self.status:
            judges = launcher.judges if self.judges is None else self.judges
            for name, role in command.roles(judges, self.builders or 0).items():
                if name not in standing:
                    launcher.start(name, role)
            standing = launcher.status()
        for name, words in standing.items():
            say(f"{name:<12} {words}")
        if not standing:
            say("no workers run here")

    def _launcher(self, command: WorkerCommand) -> Launcher:
        if isinstance(command.place.database, Path):
            raise UsageError(
                f"workers of other machines do not reach {command.place.database}: give a database on a "
                "server, --db postgresql+psycopg://USER@HOST/NAME"
            )
        if self.slurm:
            from kernelproof.service.launchers import Slurm

            return Slurm(command)
        from kernelproof.service.launchers import Ray

        return Ray(command, self.ray or "auto")


@service_app.command()
def workers(
    *,
    places: Annotated[
        int, Option("Evaluations that it has at once; 0: as many as cores and devices serve.", WORKER_PLACES)
    ] = 0,
    role: Annotated[
        Role,
        Option(
            "all: builds and judges; build: compiles and publishes, needs no device; judge: judges "
            "what is built.",
            parser=str,
        ),
    ] = Role.ALL,
    artefacts: Annotated[
        str | None,
        Option(
            "Where builders publish: a directory that all machines have, or an address that fsspec "
            "knows, such as s3://BUCKET/FOLDER.",
            parser=str,
            metavar="URL",
        ),
    ] = None,
    unsafe: UnsafeOption = False,
    until_input_ends: Annotated[bool, typer.Option("--until-input-ends", hidden=True)] = False,
    launcher: LauncherOptions,
    storage: StorageOptions,
) -> None:
    """Build and judge the queue of the evaluation service, until it is interrupted.

    With --ray or --slurm: start workers there, and end.
    """
    from kernelproof.service.artefacts import artefacts_place
    from kernelproof.service.launchers import WorkerCommand
    from kernelproof.service.serving import work

    in_cluster = launcher.in_cluster
    command = WorkerCommand(
        place=storage.open_workspace(),
        places=places,
        artefacts=artefacts_place(artefacts) if artefacts is not None else None,
        unsafe=unsafe,
        cpus=launcher.cpus or 1,
    )
    if in_cluster:
        launcher.launch(command)
    else:
        work(command, role=role, until_input_ends=until_input_ends)


@service_app.command()
def gpus(
    *,
    set_aside: Annotated[
        str | None, Option("Have no judge use this GPU, until it is put back.", metavar="<uuid>")
    ] = None,
    put_back: Annotated[
        str | None,
        Option("Let judges use this GPU again; the next one asks the canary first.", metavar="<uuid>"),
    ] = None,
    storage: StorageOptions,
    as_json: JsonOption = False,
) -> None:
    """List the GPUs of the evaluation service: which judge holds each, and why one is set aside.

    A UUID may be shortened, as long as it names one GPU.
    """
    changes = put_back is not None or set_aside is not None
    with _stored_service(storage.database, only_read=not changes) as service:
        known = service.gpus
        if set_aside is not None:
            known.set_aside(_one(known, set_aside), "an operator set it aside")
        if put_back is not None:
            _put_back(known, put_back)
        all_gpus = known.all()
    if as_json:
        print(json_line(all_gpus))
        return
    for gpu in all_gpus:
        say(f"{gpu.uuid}  {gpu.name}  on {gpu.host}  {_state(gpu)}")
    if not all_gpus:
        say("no judge has seen a GPU yet; start some with kernelproof service workers")


def _put_back(known: Gpus, uuid: str) -> None:
    chosen = _one(known, uuid)
    if not known.put_back(chosen):
        raise UsageError(f"{chosen} is not set aside; kernelproof service gpus lists those that are")


def _one(known: Gpus, beginning: str) -> str:
    """The UUID that begins so. Raises UsageError where none or several do."""
    matches = [gpu.uuid for gpu in known.all() if gpu.uuid.startswith(beginning)]
    if len(matches) != 1:
        what = "several GPUs begin" if matches else "no judge has seen a GPU that begins"
        raise UsageError(f"{what} with {beginning!r}; kernelproof service gpus lists them")
    return matches[0]


def _state(gpu: StoredGpu) -> str:
    if gpu.state == "set aside":
        return f"set aside: {gpu.reason}"
    doubt = ", put back and not yet proven" if gpu.unproven else ""
    if gpu.owner is None:
        return gpu.state + doubt
    process = "".join(gpu.owner.split(":")[1:2])
    return f"held by process {process}, silent for {gpu.silent_s:.0f} s{doubt}"


@callers_app.command()
def add(
    name: NameArgument,
    *,
    quota: Annotated[
        int | None, Option("Evaluations of the caller that may wait or run [default: no limit].", QUEUE)
    ] = None,
    storage: StorageOptions,
) -> None:
    """Give a caller a token. It is shown once, and only its hash is stored."""
    from kernelproof.db.store import open_store

    with open_store(storage.create_workspace().database) as store:
        say(store.service.callers.add(name, quota))


@callers_app.command()
def revoke(name: NameArgument, *, storage: StorageOptions) -> None:
    """Accept a caller's token no more."""
    with _stored_service(storage.database, only_read=False) as service:
        service.callers.revoke(name)
        say(f"the token of {name} is accepted no more")


@callers_app.command("list")
def list_(*, storage: StorageOptions, as_json: JsonOption = False) -> None:
    """List callers, those whose token was revoked too."""
    with _stored_service(storage.database, only_read=True) as service:
        callers = service.callers.all()
    if as_json:
        print(json_line(callers))
        return
    for caller in callers:
        quota = "no quota" if caller.quota is None else f"quota {caller.quota:,}"
        say(f"{caller.name}  {quota}  {'revoked ' + caller.revoked if caller.revoked else 'accepted'}")
    if not callers:
        say("no caller has a token: the service is open to everybody on its machine, and to nobody else")


service_app.add_typer(callers_app, name="callers")


@contextmanager
def _stored_service(place: DatabasePlace, *, only_read: bool) -> Iterator[ServiceData]:
    """The part of the service in the database at `place`. Raises NothingStored where it is not there yet."""
    from kernelproof.db.store import open_store

    try:
        store = open_store(place, create=False, only_read=only_read)
    except NothingStored as error:
        raise NothingStored(
            f"there is no database {place} yet; kernelproof service api makes it (or choose the right "
            "--workspace or --db)"
        ) from error
    with store:
        yield store.service
