"""Stand-ins for sandboxed processes: threads of the test that serve the other end of a contestant's socket.

`verify` and `Contestant` then read what any peer could write, without starting ten thousand processes.
"""

from __future__ import annotations

import contextlib
import json
import os
import socket
import threading
import time
from array import array
from collections.abc import Callable, Iterator
from functools import wraps
from pathlib import Path
from typing import Any

import pytest

from kernelproof.verifier.contestant.main import Runner
from kernelproof.verifier.contestant.wire import WireError
from kernelproof.verifier.referee.inputs.problem import LoadedProblem
from kernelproof.verifier.sandbox import Confinement, Group, Held, Job, Outcome, Tier

Serve = Callable[[socket.socket], None]
Rewrite = Callable[[dict[str, Any], bytes], list[bytes | None]]
"""From a request and the frame that would answer it to what is sent; None: the connection is closed."""

ENDED = Outcome(
    state="ok",
    exit_code=0,
    signal=None,
    stdout="",
    stderr="",
    wall_s=0.0,
    cpu_s=0.0,
    peak_rss_bytes=0,
    kill_ms=0.0,
)


class Double:
    """As `kernelproof.verifier.sandbox.Process`, but a thread in which `serve` runs on the job's socket."""

    confinement = Confinement(Tier.D, {})

    def __init__(self, job: Job, serve: Serve) -> None:
        self._sock = socket.socket(fileno=os.dup(job.pass_fds[0]))
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, args=(serve,), daemon=True)
        self._thread.start()

    def _run(self, serve: Serve) -> None:
        with contextlib.suppress(OSError, WireError):
            serve(self._sock)
        with contextlib.suppress(OSError):
            self._sock.shutdown(socket.SHUT_RDWR)
        self._over.set()

    def wait(self, timeout: float | None = None) -> Outcome | None:
        return ENDED if self._over.wait(timeout) else None

    def kill(self, reason: str = "killed") -> Outcome:
        """Ends the connection and waits for the thread: one that goes on is the test's failure."""
        with contextlib.suppress(OSError):
            self._sock.shutdown(socket.SHUT_RDWR)
        self._thread.join(30)
        assert not self._thread.is_alive()
        self._sock.close()
        return ENDED

    def output(self) -> tuple[str, str]:
        return "", ""

    def pids(self) -> tuple[int, ...]:
        return ()

    def pause(self) -> None:
        pass

    def halt(self) -> int:
        return time.perf_counter_ns()

    def held_still(self) -> Held:
        return Held(holds=0, ran_ms=0.0, woken=0)

    def look(self) -> float:
        return 0.0

    def resume(self) -> None:
        pass

    def allow_memory(self, nbytes: int) -> None:
        pass


def start_doubles(patch: pytest.MonkeyPatch, serve: Serve) -> None:
    """From now on every sandboxed job is a double that runs `serve`."""

    def start(group: Group, job: Job, *, unsafe: bool = False) -> Double:
        return Double(job, serve)

    patch.setattr(Group, "start", start)


class Saboteur(socket.socket):
    """A runner's socket that rewrites what the runner answers."""

    def __init__(self, sock: socket.socket, rewrite: Rewrite) -> None:
        super().__init__(fileno=sock.detach())
        self._rewrite = rewrite
        self._heard = b""
        self._taken: list[int] = []

    def recv(self, count: int, flags: int = 0) -> bytes:
        data = super().recv(count, flags)
        self._heard += data
        return data

    def recvmsg(self, *arguments: Any) -> Any:
        data, ancillary, *rest = super().recvmsg(*arguments)
        self._heard += data
        for _, _, raw in ancillary:
            descriptors = array("i")
            descriptors.frombytes(raw[: len(raw) - len(raw) % descriptors.itemsize])
            self._taken += descriptors
        return (data, ancillary, *rest)

    def sendall(self, data: Any, flags: int = 0) -> None:
        """Sends what the rewriting makes of the frame. Raises OSError where that ends the connection."""
        heard, self._heard = self._heard, b""
        request: dict[str, Any] = json.loads(heard[4:]) if heard else {"op": "ready"}
        for piece in self._rewrite(request, bytes(data)):
            if piece is None:
                raise ConnectionError("the saboteur hung up")
            super().sendall(piece, flags)

    def close(self) -> None:
        """Closes also what the runner was sent: it maps its descriptors and never closes them."""
        for descriptor in self._taken:
            with contextlib.suppress(OSError):
                os.close(descriptor)
        super().close()


GENERATOR = threading.RLock()
"""Held by the thread that draws random numbers. A runner that is a process has a generator of its own; one
that is a thread seeds the referee's, which would then draw other inputs the second time."""


def drawing_alone(work: Callable[..., Any]) -> Callable[..., Any]:
    """The same work, done while no other thread draws."""

    @wraps(work)
    def alone(*arguments: Any, **named: Any) -> Any:
        with GENERATOR:
            return work(*arguments, **named)

    return alone


@contextlib.contextmanager
def apart(folder: Path, patch: pytest.MonkeyPatch) -> Iterator[None]:
    """Scratch directories, locks and the working directory of runners lie in `folder`, and no scratch is left
    there afterwards."""
    for name in ("tmp", "locks", "work"):
        (folder / name).mkdir()
    patch.setenv("TMPDIR", str(folder / "tmp"))
    patch.setattr("tempfile.tempdir", None)
    patch.setenv("KERNELPROOF_LOCKS", str(folder / "locks"))
    patch.chdir(folder / "work")
    share_the_generator(patch)
    yield
    assert list((folder / "tmp").glob("kernelproof-*")) == []


def share_the_generator(patch: pytest.MonkeyPatch) -> None:
    """From now on the referee draws while no sabotaged runner does."""
    for name in ("draw", "construct", "run"):
        patch.setattr(LoadedProblem, name, drawing_alone(getattr(LoadedProblem, name)))


class Threaded(Runner):
    """A runner in a thread of the referee's process."""

    def __init__(self, sock: socket.socket) -> None:
        super().__init__(sock)
        self._handlers = {op: drawing_alone(handler) for op, handler in self._handlers.items()}


def serve_sabotaged(sock: socket.socket, rewrite: Rewrite) -> None:
    """A real runner on the socket, its answers rewritten."""
    with Saboteur(sock.dup(), rewrite) as saboteur:
        saboteur.sendall(b'\x00\x00\x00\x0e{"ready":true}')
        Threaded(saboteur).serve()
