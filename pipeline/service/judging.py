"""A judge for each GPU of this machine, each a process that sees one GPU alone."""

from __future__ import annotations

import threading
from dataclasses import replace

from kernelproof.choices import Role
from kernelproof.jobs.judge import places as usual_places
from kernelproof.report.plain import say
from kernelproof.service.keeping import Keeper
from kernelproof.service.launchers.model import WorkerCommand
from kernelproof.verifier.devices.discovery import VISIBLE, Gpu, gpus


def judged_gpus() -> tuple[Gpu, ...]:
    """The GPUs that get a judge: the first one, and all of its name. Those that are set aside are among them:
    their judges wait until they are put back.

    Where there are others, `CUDA_VISIBLE_DEVICES` chooses.
    """
    return tuple(gpu for gpu in gpus() if gpu.name == gpus()[0].name)


def keep_judges(command: WorkerCommand, role: Role, stop: threading.Event) -> None:
    """Keeps a judge running for each GPU until `stop` is set; then all of them end.

    `command.places`: of each; where they are 0, those that build as well share what the cores serve.
    """
    judged = judged_gpus()
    if role is Role.ALL and not command.places:
        command = replace(command, places=max(2, usual_places() // len(judged)))
    options, environment = command.options(role), command.environment
    keepers = [
        Keeper(f"judge-{number}", options, environment | {VISIBLE: gpu.uuid})
        for number, gpu in enumerate(judged)
    ]
    try:
        for keeper in keepers:
            keeper.start()
        say(f"a judge for each of {', '.join(map(str, judged))}; Ctrl-C ends them")
        stop.wait()
    finally:
        for keeper in keepers:
            keeper.tell()
        for keeper in keepers:
            keeper.end()
