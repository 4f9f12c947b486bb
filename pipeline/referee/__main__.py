"""`python -m pipeline.referee SOCKET LIFELINE`: serves one orchestrator over inherited descriptors.

The lifeline is a pipe whose other end the orchestrator holds: when it closes, for whatever reason, this
process dies at once, and its sandboxes with it.
"""

from __future__ import annotations

import contextlib
import gc
import os
import signal
import socket
import sys
import threading
from pathlib import Path
from typing import Any

import torch

from pipeline.build import Builder, Toolchain
from pipeline.contestant import wire
from pipeline.errors import DeviceUnfit, KernelproofError
from pipeline.nouns import Build, CoreShares
from pipeline.referee.device.environment import describe_environment
from pipeline.referee.judge import Tools, judge
from pipeline.referee.kept import Kept
from pipeline.referee.request import VerifyRequest
from pipeline.referee.seats.host import NeedsBuild
from pipeline.referee.seats.seat import gpus
from pipeline.referee.seats.shelf import WHILE_HELD, Shelf
from pipeline.sandbox import Group, on_cores

SWITCH_SECONDS = 0.0002
"""No thread waits longer than this for another to give way; Python's own 5 ms are as long as a block."""


def main() -> None:
    """Answers `environment` and `verify` requests, one at a time."""
    # Other threads watch the sandboxes. When an answer comes that a clock waits for, they give way at once.
    sys.setswitchinterval(SWITCH_SECONDS)
    gc.freeze()  # what the imports made stays: to look for garbage in it takes as long as a block
    sock = socket.socket(fileno=int(sys.argv[1]))
    threading.Thread(target=_die_with, args=(int(sys.argv[2]),), daemon=True).start()
    wire.send(sock, {"ready": True, "torch": torch.__version__})
    kept = Kept()
    try:
        _serve(sock, kept)
    finally:
        kept.close()


def _serve(sock: socket.socket, kept: Kept) -> None:
    while True:
        try:
            message, _ = wire.receive(sock)
        except wire.WireClosed:
            return
        if message.get("op") == "bye":
            return
        try:
            wire.send(sock, _answer(message, sock, kept))
        except KernelproofError as error:
            unfit = isinstance(error, DeviceUnfit)
            wire.send(sock, {"error": str(error), "exit_code": error.exit_code, "unfit": unfit})
        if message.get("more"):
            _refill(kept, VerifyRequest.model_validate(message["request"]))


def _answer(message: dict[str, Any], sock: socket.socket, kept: Kept) -> dict[str, Any]:
    if message["op"] == "environment":
        environment = describe_environment(torch.device(message["device"]))
        return {"environment": environment.model_dump(mode="json")}
    request = VerifyRequest.model_validate(message["request"])
    cache, toolchain = Path(message["cache"]), Toolchain.model_validate(message["toolchain"])
    cores = CoreShares.model_validate(message["cores"])
    kept.share(cores)
    builder = Builder(cache, toolchain=toolchain, unsafe=request.settings.unsafe, group=Group(cores.others))
    made = {content: Build.model_validate(each) for content, each in message["made"].items()}
    shelf = Shelf(builder, made, request.settings.build_seconds, hand_back=message["hand_back"])

    def progress(stage: str) -> None:
        wire.send(sock, {"stage": stage})

    found = describe_environment(torch.device(request.device)).model_dump(mode="json")
    wire.send(sock, {"stage": "environment", "environment": found})  # others wait for no more than this
    more = bool(message.get("more"))
    try:
        with on_cores((*cores.measured, *cores.others)):  # off those that are kept for other GPUs
            verdict = judge(request, Tools(shelf.build, progress, cache, toolchain, kept, more))
    except NeedsBuild as error:
        return {"needs": error.request.model_dump(mode="json")}
    if not more:
        kept.close()
    seconds = {**verdict.stage_seconds, WHILE_HELD: round(shelf.seconds, 3)}
    return {"verification": verdict.model_copy(update={"stage_seconds": seconds}).model_dump(mode="json")}


def _refill(kept: Kept, request: VerifyRequest) -> None:
    """Others come up in place of the processes that were used, while the next verification begins."""
    settings, spares, device = request.settings, kept.spares, torch.device(request.device)
    if device.type == "cuda":
        kept.canaries.refill(request.device, spares.shares.others)

    def start() -> None:
        with contextlib.suppress(KernelproofError):  # the next verification says what is wrong
            spares.refill(gpus(device), settings.memory_bytes, unsafe=settings.unsafe, count=spares.ahead)

    kept.behind.later(start)


def _die_with(lifeline: int) -> None:
    os.read(lifeline, 1)
    os.kill(os.getpid(), signal.SIGKILL)


if __name__ == "__main__":
    main()
