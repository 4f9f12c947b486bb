"""The trusted end of a contestant: starts it in a sandbox, asks it things, and expects the worst.

No torch here: the orchestrator uses the same class to let a candidate ask for its builds.
"""

from __future__ import annotations

import contextlib
import os
import socket
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from pipeline import version
from pipeline.contestant import wire
from pipeline.nouns import Build, BuildRequest, BuildState, SandboxReport
from pipeline.sandbox import Group, Job, Limits, Outcome, Process, Scratch, python_paths

BuildService = Callable[[BuildRequest], Build]

START_SECONDS = 120.0
"""Most seconds for Python and torch to start inside the sandbox: a slow disk, not a candidate."""
MAX_BUILDS = 64
"""Most extensions one candidate may ask for."""
EVEN_GROUND = {
    # OpenMP threads sleep between parallel regions. The two take turns on the same cores; a thread that
    # spins would hold one that the other side is timed on.
    "OMP_WAIT_POLICY": "passive",
    # Freed memory stays with the process. Otherwise a process that has freed large blocks before (the
    # referee) gets its outputs from warm pages, and a fresh one pays a page fault for every 4 KiB.
    "MALLOC_MMAP_MAX_": "0",
    "MALLOC_TRIM_THRESHOLD_": str(1 << 40),
}
"""Variables that referee and contestant both start with, so that neither is timed on better terms."""
_SCRIPT = "import sys; sys.path.insert(0, {root!r}); from pipeline.contestant.main import main; main()"


class ContestantFailed(Exception):
    """The candidate raised: `error` is what it said (kind, type, message, traceback), untrusted text."""

    def __init__(self, error: dict[str, Any]) -> None:
        self.kind = _text(error, "kind")
        self.type = _text(error, "type")
        self.message = _text(error, "message")
        self.traceback = _text(error, "traceback")
        super().__init__(f"{self.type}: {self.message}")


class ContestantGone(Exception):
    """The contestant's process ended, broke the protocol, or was killed at a limit."""

    def __init__(
        self, why: str, outcome: Outcome, *, timed_out: bool = False, protocol: bool = False
    ) -> None:
        super().__init__(why)
        self.outcome = outcome
        self.timed_out = timed_out
        self.protocol = protocol


class Contestant:
    """One sandboxed process with one candidate. Used once; `close` proves it gone."""

    def __init__(
        self,
        build: BuildService,
        *,
        gpus: Sequence[int] = (),
        memory_bytes: int,
        unsafe: bool = False,
        jobs: Group | None = None,
    ) -> None:
        """`jobs`: the group that it is started in, if another thread may have to end it."""
        self._build = build
        self.builds: list[Build] = []
        self.outcome: Outcome | None = None
        self._scratch = Scratch()
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
        self._sock = ours
        try:
            self._process = self._start(jobs or Group(), theirs.fileno(), gpus, memory_bytes, unsafe)
        except BaseException:
            ours.close()
            self._scratch.remove()
            raise
        finally:
            theirs.close()

    def _start(self, jobs: Group, descriptor: int, gpus: Sequence[int], memory: int, unsafe: bool) -> Process:
        package = Path(version.__file__).parent
        job = Job(
            argv=(
                sys.executable,
                "-I",
                "-B",
                "-c",
                _SCRIPT.format(root=str(package.parent)),
                str(descriptor),
            ),
            scratch=self._scratch.path,
            read_only=(
                *python_paths(),
                package / "__init__.py",
                package / "version.py",
                package / "contestant",
            ),
            gpus=tuple(gpus),
            env=contestant_environment(),
            pass_fds=(descriptor,),
            limits=Limits(wall_s=None, cpu_s=3600, memory_bytes=memory, processes=256),
        )
        return jobs.start(job, unsafe=unsafe)

    @property
    def sandbox(self) -> SandboxReport:
        """What holds the candidate, for the record."""
        return SandboxReport.model_validate(asdict(self._process.confinement))

    def wait_ready(self) -> None:
        """Waits until the runner is up. Raises ContestantGone when it does not come."""
        self._receive(time.monotonic() + START_SECONDS)

    def ask(self, message: dict[str, Any], *, seconds: float, fds: Sequence[int] = ()) -> dict[str, Any]:
        """Sends a request and returns the reply; build requests in between are served, off the clock.

        Raises ContestantFailed when the candidate raised, ContestantGone when its process ended, spoke
        nonsense, or took longer than `seconds` (it is killed then).
        """
        deadline = time.monotonic() + seconds
        try:
            wire.send(self._sock, message, fds)
        except OSError:
            raise self._gone("the process ended") from None
        while True:
            reply = self._receive(deadline)
            if reply.get("op") != "build":
                break
            began = time.monotonic()
            self._serve_build(reply.get("request"))
            deadline += time.monotonic() - began
        error = reply.get("error")
        if error is not None:
            raise ContestantFailed(error if isinstance(error, dict) else {})
        return reply

    def pause(self) -> None:
        """Holds the candidate still: no thread of it runs until `resume`."""
        self._process.pause()

    def resume(self) -> None:
        """Lets the candidate go on."""
        self._process.resume()

    def close(self) -> Outcome:
        """Kills whatever is left and removes the scratch directory. Safe to call twice."""
        if self.outcome is None:
            with contextlib.suppress(OSError):
                self._sock.close()
            self.outcome = self._process.kill("closed")
            self._scratch.remove()
        return self.outcome

    def __enter__(self) -> Contestant:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _receive(self, deadline: float) -> dict[str, Any]:
        try:
            self._sock.settimeout(max(deadline - time.monotonic(), 0.001))
            return wire.receive(_Deadlined(self._sock, deadline))[0]  # type: ignore[arg-type]
        except TimeoutError:
            raise self._gone("no answer in time", timed_out=True) from None
        except wire.WireClosed:
            raise self._gone("the process ended") from None
        except wire.WireError as error:
            raise self._gone(f"it broke the protocol: {error}", protocol=True) from None
        except OSError:
            raise self._gone("the process ended") from None

    def _gone(self, why: str, *, timed_out: bool = False, protocol: bool = False) -> ContestantGone:
        if not timed_out and not protocol:
            self._process.wait(2.0)  # its own end, if that is what happened, rather than our kill
        return ContestantGone(why, self.close(), timed_out=timed_out, protocol=protocol)

    def _serve_build(self, raw: Any) -> None:
        reply, descriptor = self._built(raw)
        try:
            wire.send(self._sock, reply, [descriptor] if descriptor is not None else [])
        except OSError:
            raise self._gone("the process ended") from None
        finally:
            if descriptor is not None:
                os.close(descriptor)

    def _built(self, raw: Any) -> tuple[dict[str, Any], int | None]:
        if len(self.builds) >= MAX_BUILDS:
            return {"log": f"a candidate may ask for at most {MAX_BUILDS} builds"}, None
        try:
            request = BuildRequest.model_validate(raw)
        except ValueError as error:
            return {"log": f"the arguments of load_inline are not usable: {error}"}, None
        build = self._build(request)
        self.builds.append(build)
        if build.state is not BuildState.OK or build.library is None:
            return {"log": build.log[-100_000:]}, None
        return {}, os.open(build.library, os.O_RDONLY | os.O_CLOEXEC)


class _Deadlined:
    """A socket whose every read obeys one deadline: a peer that drips bytes cannot stretch it."""

    def __init__(self, sock: socket.socket, deadline: float) -> None:
        self._sock, self._deadline = sock, deadline

    def recv(self, count: int) -> bytes:
        left = self._deadline - time.monotonic()
        if left <= 0:
            raise TimeoutError
        self._sock.settimeout(left)
        return self._sock.recv(count)


def contestant_environment() -> dict[str, str]:
    """The few variables of ours that a contestant needs: where CUDA's libraries are, nothing else."""
    kept = ("LD_LIBRARY_PATH", "CUDA_HOME", "NVIDIA_VISIBLE_DEVICES", "NVIDIA_DRIVER_CAPABILITIES")
    return EVEN_GROUND | {name: os.environ[name] for name in kept if name in os.environ}


def _text(error: dict[str, Any], field: str) -> str:
    value = error.get(field)
    return value[:20_000] if isinstance(value, str) else ""
