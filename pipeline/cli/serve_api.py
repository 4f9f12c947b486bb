"""`kernelproof serve-api`: the evaluation service over HTTP; `workers`: what verifies for it."""

from __future__ import annotations

from typing import Annotated

import typer

from kernelproof.bounds import LOSSES, PORT, QUEUE, WORKER_PLACES
from kernelproof.choices import Role
from kernelproof.cli.declaring import Option
from kernelproof.cli.launching import LauncherOptions
from kernelproof.cli.options import StorageOptions, SuiteOption, UnsafeOption, VerifyOptions

HostOption = Annotated[
    str,
    Option("Address to listen at; another than this machine's own needs callers with tokens.", parser=str),
]


def serve_api(
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

    It needs pip install 'kernelproof[service]'.
    """
    from kernelproof.service.extra import require

    require()
    from kernelproof.service.serving import Serving, serve

    serving = Serving(
        place=storage.opened(),
        suite=suite,
        settings=options.settings([]),
        most=max_queue,
        most_losses=max_losses,
        references=accept_references,
        live=live,
    )
    serve(serving, host, port, names=allow_host or [], worker=worker)


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
    from kernelproof.service.launchers.model import WorkerCommand
    from kernelproof.service.serving import work

    asked = launcher.asked
    command = WorkerCommand(
        place=storage.opened(),
        places=places,
        artefacts=artefacts_place(artefacts) if artefacts is not None else None,
        unsafe=unsafe,
        cpus=launcher.cpus or 1,
    )
    if asked:
        launcher.launch(command)
    else:
        work(command, role=role, until_input_ends=until_input_ends)
