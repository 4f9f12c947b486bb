"""Members of the corpus at work without a referee: the contestant's runner loads, calls and times them.

They share one sandbox. A process that has imported torch forks a child for each, in turn, so a member takes
tenths of a second instead of the seconds of a verification. Nobody judges what they compute.
"""

from __future__ import annotations

import contextlib
import socket
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch

from kernelproof.verifier.contestant import wire
from kernelproof.verifier.referee.inputs.problem import LoadedProblem
from kernelproof.verifier.referee.sides import init_arguments
from kernelproof.verifier.sandbox import Job, Limits, Scratch, python_paths, start
from kernelproof.verifier.workers.client import contestant_environment, program
from kernelproof.verifier.workers.shared_memory import SharedMemory, lay_out, share_weights
from tests.referee.corpus import Member

CPU = torch.device("cpu")
CALLS, SLOTS = 3, 2
SECONDS = 120.0
"""For one reply. A member may forge, double or break its replies; then some requests get none."""
_FORK = """
import os
sockets = [int(number) for number in sys.argv[1:]]
while sockets:
    if os.fork() == 0:
        for other in sockets[1:]:
            os.close(other)
        os.dup2(os.open(f"{sockets[0]}.txt", os.O_CREAT | os.O_WRONLY), 2)
        sys.argv[1:] = [str(sockets[0])]
        try:
            main()
        finally:
            os._exit(1)
    os.close(sockets.pop(0))
    os.wait()
"""


def outputs(chosen: Sequence[Member]) -> list[str]:
    """What each member printed to stderr, and the tracebacks of what it raised. Raises SandboxError."""
    pairs = [socket.socketpair() for _ in chosen]
    numbers = [theirs.fileno() for _, theirs in pairs]
    room, scratch = Path(wire.__file__).resolve().parent, Scratch()
    job = Job(
        argv=(sys.executable, "-I", "-B", "-c", _forking(room), *map(str, numbers)),
        scratch=scratch.path,
        read_only=(*python_paths(), room),
        env=contestant_environment(),
        pass_fds=tuple(numbers),
        limits=Limits(wall_s=None, memory_bytes=8 << 30),
    )
    try:
        with start(job) as process:
            for _, theirs in pairs:
                theirs.close()
            raised = [_exercised(ours, member) for (ours, _), member in zip(pairs, chosen, strict=True)]
            process.wait(SECONDS)
        printed = [(scratch.path / f"{number}.txt").read_text() for number in numbers]
        return ["".join(texts) for texts in zip(printed, raised, strict=True)]
    finally:
        scratch.remove()


def _forking(room: Path) -> str:
    alone, last = program(room), "main()\n"
    assert alone.endswith(last)
    return alone.removesuffix(last) + _FORK


def _exercised(sock: socket.socket, member: Member) -> str:
    """The tracebacks of what it raised in a few calls and a timed block."""
    loaded = LoadedProblem(member.problem, member.settings.size)
    model = loaded.construct(0, CPU)
    inputs = loaded.draw(0, CPU)
    memory, raised = SharedMemory(CPU), list[str]()
    with sock, contextlib.closing(memory), contextlib.suppress(OSError, wire.WireError):
        sock.settimeout(SECONDS)
        slots = lay_out(memory, inputs, [loaded.run(model, inputs, 0)], SLOTS)
        weights = share_weights(memory, model.state_dict(), "weights")
        for slot in slots:
            slot.fill(inputs)
        attach, descriptors = memory.announce("inputs", "outputs", "weights")
        block = {"op": "time", "slots": [slot.arguments for slot in slots]}
        wire.receive(sock)
        for message, fds in (
            ({"op": "hello", "device": "cpu", "threads": 1, "flush_bytes": 0}, ()),
            (attach, descriptors),
            ({"op": "load", "source": member.source, "seed": 0}, ()),
            ({"op": "construct", "class": "ModelNew", "arguments": init_arguments(loaded), "seed": 0}, ()),
            ({"op": "weights", "tensors": weights.specs}, ()),
            *[({"op": "call", "seed": 0} | slot.message(), ()) for slot in slots[:1] * CALLS],
            (block, ()),
        ):
            reply = _answer(sock, message, fds, [slot.output_specs for slot in slots])
            raised.append(reply.get("error", {}).get("traceback", ""))
        wire.send(sock, {"op": "bye"})
        sock.shutdown(socket.SHUT_WR)
        while sock.recv(1 << 16):  # until it has ended
            pass
    return "".join(raised)


def _answer(
    sock: socket.socket, message: dict[str, Any], fds: Sequence[int], places: Sequence[Any]
) -> dict[str, Any]:
    wire.send(sock, message, fds)
    while (reply := wire.receive(sock)[0]).get("op") == "places":
        wire.send(sock, {"places": places})
    return reply
