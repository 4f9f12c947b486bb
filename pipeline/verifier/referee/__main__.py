"""`python -m kernelproof.verifier.referee SOCKET LIFELINE`: serves one orchestrator over inherited sockets.

The lifeline is a pipe whose other end the orchestrator holds: when it closes, for whatever reason, this
process dies at once, and its sandboxes with it.
"""

# ruff: noqa: E402
from __future__ import annotations

import gc

gc.disable()  # importing makes objects by the hundred thousand, and none of them is garbage

import contextlib
import os
import signal
import socket
import sys
import threading
from pathlib import Path
from typing import Any

import torch

from kernelproof.errors import DeviceUnfit, KernelproofError
from kernelproof.types import Build, CoreShares
from kernelproof.types.verification import WHILE_HELD, VerifyRequest
from kernelproof.verifier.build import Builder, Toolchain
from kernelproof.verifier.contestant import wire
from kernelproof.verifier.referee.environment import describe_environment
from kernelproof.verifier.referee.session import Tools, WarmState
from kernelproof.verifier.referee.sides import gpus
from kernelproof.verifier.referee.verdict import prepare, verify
from kernelproof.verifier.sandbox import Group, on_cores
from kernelproof.verifier.workers.client import NeedsBuild, ReadyBuilds

SWITCH_SECONDS = 0.0002
"""No thread waits longer than this for another to give way; Python's own 5 ms are as long as a block."""


def main() -> None:
    """Answers `environment`, `prepare` and `verify` requests, one at a time."""
    # Other threads watch the sandboxes. When an answer comes that a clock waits for, they give way at once.
    sys.setswitchinterval(SWITCH_SECONDS)
    gc.freeze()  # imported objects stay: a search for garbage in them takes as long as a block
    gc.enable()
    sock = socket.socket(fileno=int(sys.argv[1]))
    threading.Thread(target=_die_with, args=(int(sys.argv[2]),), daemon=True).start()
    wire.send(sock, {"ready": True, "torch": torch.__version__})
    warm = WarmState()
    try:
        _serve(sock, warm)
    finally:
        warm.close()


def _serve(sock: socket.socket, warm: WarmState) -> None:
    while True:
        try:
            message, _ = wire.receive(sock)
        except wire.WireClosed:
            return
        if message.get("op") == "bye":
            return
        try:
            wire.send(sock, _answer(message, sock, warm))
        except KernelproofError as error:
            unfit = isinstance(error, DeviceUnfit)
            wire.send(sock, {"error": str(error), "exit_code": error.exit_code, "unfit": unfit})
        if message.get("more"):
            _refill(warm, VerifyRequest.model_validate(message["request"]))


def _answer(message: dict[str, Any], sock: socket.socket, warm: WarmState) -> dict[str, Any]:
    if message["op"] == "environment":
        environment = describe_environment(torch.device(message["device"]))
        return {"environment": environment.model_dump(mode="json")}
    request, cache = VerifyRequest.model_validate(message["request"]), Path(message["cache"])
    cores, more = CoreShares.model_validate(message["cores"]), bool(message.get("more"))
    warm.share(cores)

    def progress(stage: str) -> None:
        wire.send(sock, {"stage": stage})

    found = describe_environment(torch.device(request.device)).model_dump(mode="json")
    wire.send(sock, {"stage": "environment", "environment": found})  # others wait for no more than this
    if message["op"] == "prepare":
        with on_cores((*cores.measured, *cores.others)):
            prepare(request.settings, torch.device(request.device), cache, warm, progress, more=more)
        return {}
    toolchain = Toolchain.model_validate(message["toolchain"])
    builder = Builder(cache, toolchain=toolchain, unsafe=request.settings.unsafe, group=Group(cores.others))
    made = {content: Build.model_validate(each) for content, each in message["made"].items()}
    ready_builds = ReadyBuilds(builder, made, request.settings.build_seconds, hand_back=message["hand_back"])
    try:
        with on_cores((*cores.measured, *cores.others)):  # off those that are kept for other GPUs
            verdict = verify(request, Tools(ready_builds.build, progress, cache, toolchain, warm, more))
    except NeedsBuild as error:
        return {"needs": error.request.model_dump(mode="json")}
    if not more:
        warm.close()
    seconds = {**verdict.stage_seconds, WHILE_HELD: round(ready_builds.seconds, 3)}
    return {"verification": verdict.model_copy(update={"stage_seconds": seconds}).model_dump(mode="json")}


def _refill(warm: WarmState, request: VerifyRequest) -> None:
    """Others come up in place of the processes that were used, while the next verification begins."""
    settings, pool, device = request.settings, warm.pool, torch.device(request.device)
    if device.type == "cuda":
        warm.canaries.refill(request.device, pool.shares.others)

    def start() -> None:
        with contextlib.suppress(KernelproofError):  # the next verification says what is wrong
            count = pool.ahead if settings.measure else pool.ahead_unmeasured
            pool.refill(gpus(device), settings.memory_bytes, unsafe=settings.unsafe, count=count)

    warm.cleanup.later(start)


def _die_with(lifeline: int) -> None:
    os.read(lifeline, 1)
    os.kill(os.getpid(), signal.SIGKILL)


if __name__ == "__main__":
    main()
    sys.stdout.flush()
    os._exit(0)  # what libraries that torch has loaded would say of their own end is of no interest
