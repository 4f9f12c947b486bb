"""The trusted end of a contestant: starts it in a sandbox, asks it things, and expects the worst.

No torch here: the orchestrator uses the same class to let a candidate ask for its builds. While a device is
held, `ReadyBuilds` serves those builds from the cache, and no compiler runs.
"""

from __future__ import annotations

import contextlib
import os
import select
import socket
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Any

from pydantic import ValidationError

from kernelproof.backends import backend
from kernelproof.errors import KernelproofError
from kernelproof.types import Build, BuildRequest, BuildState, SandboxReport, VerifySettings
from kernelproof.types.record import explain
from kernelproof.verifier.build import Builder
from kernelproof.verifier.contestant import wire
from kernelproof.verifier.contestant.call_page import CallPage
from kernelproof.verifier.sandbox import Group, Held, Job, Limits, Outcome, Scratch, python_paths

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
SILENT = "6"
"""For torch's profiler, which else writes to stderr that it begins and ends: no word of the candidate's."""
_SCRIPT = """
import gc, sys, types
gc.disable()
from importlib.util import module_from_spec, spec_from_file_location
for name in ("kernelproof", "kernelproof.verifier"):
    sys.modules[name] = types.ModuleType(name)
    sys.modules[name].__path__ = []
folder = {folder!r}
spec = spec_from_file_location(
    "kernelproof.verifier.contestant", folder + "/__init__.py", submodule_search_locations=[folder]
)
sys.modules[spec.name] = module_from_spec(spec)
spec.loader.exec_module(sys.modules[spec.name])
from kernelproof.verifier.contestant.{runner} import main
main()
"""
"""Finds our one room by its file: some sandboxes do not let a process list the folder that it lies in.

Importing torch makes objects by the hundred thousand, and none of them is garbage: no search before `main`.
"""


def program(folder: Path, runner: str = "main") -> str:
    """The Python program that runs a module of the contestant's package from `folder`."""
    return _SCRIPT.format(folder=str(folder), runner=runner)


def flags_of(runner: str) -> tuple[str, ...]:
    """Python's flags. The stub's runner is told where packages lie: the search for them takes as long as the
    rest of its start."""
    return ("-I", "-B") if runner == "main" else ("-I", "-B", "-S")


def contestant_environment() -> dict[str, str]:
    """The few variables of ours that a contestant needs: where CUDA's libraries are, nothing else."""
    kept = ("LD_LIBRARY_PATH", "CUDA_HOME", "NVIDIA_VISIBLE_DEVICES", "NVIDIA_DRIVER_CAPABILITIES")
    return (
        EVEN_GROUND
        | {"KINETO_LOG_LEVEL": SILENT}
        | {name: os.environ[name] for name in kept if name in os.environ}
    )


def pools_for(cores: Sequence[int]) -> dict[str, str]:
    """Variables by which its libraries start a thread for each core that is kept for it; none: as they like.

    It comes up on other cores, which may be many. With a thread for each of those, all of them would be woken
    on its few whenever it is let go on, while a clock runs.
    """
    return dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"), str(len(cores))) if cores else {}


def hello(settings: VerifySettings, device: str = "cpu", *, interpret: bool = False) -> dict[str, Any]:
    """The first request: which device to use, and how."""
    first = backend(settings.backend).first_call
    return {
        "op": "hello",
        "device": device,
        "threads": settings.threads,
        "tf32": settings.numerics == "tf32",
        "flush_bytes": 0,
        "first_calls": first.message(interpret=interpret) if first is not None else None,
    }


Answer = Callable[[dict[str, Any]], dict[str, Any] | None]
BuildService = Callable[[BuildRequest], Build]
"""May raise NeedsBuild, which then ends what was asked of the contestant."""

START_SECONDS = 120.0
"""Most seconds for Python and torch to start inside the sandbox: a slow disk, not a candidate."""
MAX_BUILDS = 64
"""Most extensions one candidate may ask for."""
END_SECONDS = 10.0
"""Most seconds for a process that closed its connection to end by itself: large ones take seconds."""
OUTPUT_KEPT = 4000
"""Characters of each of stdout and stderr that a record keeps of a candidate which did not fail."""


@dataclass(frozen=True)
class Equipment:
    """What a contestant's process may see and use. The default is a candidate's: no compiler of ours."""

    read_only: tuple[Path, ...] = ()
    """Paths of the host beside those that Python needs."""
    env: Mapping[str, str] = field(default_factory=dict)
    """Variables beside `contestant_environment`."""
    launcher: tuple[str, ...] = ()
    """A program that starts the process and watches it, with its arguments."""
    processes: int = 256 + 4 * (os.cpu_count() or 1)
    """Processes and threads at one time. Several of its libraries start a thread for each core."""
    cpu_s: float = 3600.0
    """Processor seconds in all."""


CANDIDATE_EQUIPMENT = Equipment()


class NeedsBuild(KernelproofError):
    """The candidate wants a build that is not there yet, and no compiler runs here: the build is made
    outside."""

    def __init__(self, request: BuildRequest) -> None:
        super().__init__(f"{request.name} is not built yet")
        self.request = request


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

    def __init__(self, why: str, outcome: Outcome, *, timed_out: bool = False) -> None:
        super().__init__(why)
        self.outcome = outcome
        self.timed_out = timed_out

    @property
    def is_ours(self) -> bool:
        """Whether it was killed from outside: no fault of what ran in it."""
        return self.outcome.state in ("lost", "unkillable") and not self.timed_out


class Contestant:
    """One sandboxed process with one candidate, or with one reference after the other. `close` proves it
    gone."""

    def __init__(
        self,
        build: BuildService,
        *,
        gpus: Sequence[int] = (),
        memory_bytes: int,
        unsafe: bool = False,
        jobs: Group | None = None,
        cores: Sequence[int] = (),
        equipment: Equipment = CANDIDATE_EQUIPMENT,
        runner: str = "main",
    ) -> None:
        """`jobs`: the group that it is started in, if another thread may have to end it. `cores`: those that
        are kept for it when it is measured.

        `equipment`: with anything but a candidate's, what the process says decides nothing, unless its code
        is trusted. `runner`: the contestant's module that runs there.
        """
        self._build = build
        self.cores = tuple(cores)
        self.page: CallPage | None = None
        """On a GPU, when it has its memory."""
        self.builds: list[Build] = []
        """What it asked for, in order."""
        self.contents: dict[str, Build] = {}
        """The same by the requests' `content_sha256`."""
        self.outcome: Outcome | None = None
        self._ready = False
        self.prepared: dict[str, Any] | None = None
        """A request that was sent ahead, whose reply `wait_ready` takes."""
        self._awaited = False
        self.resets = 0
        """How many references it has let go of."""
        self._closing = threading.Lock()
        self._scratch = Scratch()
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
        self._sock = ours
        try:
            job = self._job(theirs.fileno(), gpus, memory_bytes, equipment, runner)
            self._process = (jobs or Group()).start(job, unsafe=unsafe)
        except BaseException:
            ours.close()
            self._scratch.remove()
            raise
        finally:
            theirs.close()

    def _job(
        self, descriptor: int, gpus: Sequence[int], memory: int, equipment: Equipment, runner: str
    ) -> Job:
        python = (sys.executable, *flags_of(runner))
        room = Path(wire.__file__).resolve().parent  # not by the link that gives the package its name
        return Job(
            argv=(*equipment.launcher, *python, "-c", program(room, runner), str(descriptor)),
            scratch=self._scratch.path,
            read_only=(*python_paths(), room, *equipment.read_only),
            gpus=tuple(gpus),
            env={**contestant_environment(), **pools_for(self.cores), **equipment.env},
            pass_fds=(descriptor,),
            pausable=True,
            limits=Limits(
                wall_s=None, cpu_s=equipment.cpu_s, memory_bytes=memory, processes=equipment.processes
            ),
        )

    @property
    def sandbox(self) -> SandboxReport:
        """What holds the candidate, for the record."""
        return SandboxReport.model_validate(asdict(self._process.confinement))

    @property
    def alive(self) -> bool:
        """Whether its process still runs."""
        return self.outcome is None and self._process.wait(0) is None

    @property
    def up(self) -> bool:
        """Whether the runner said that it is ready, or its end was noticed: `wait_ready` will not wait."""
        return self._ready or self._has_spoken()

    @property
    def answered(self) -> bool:
        """Whether it has answered what was sent ahead, or its end was noticed."""
        return not self._awaited or self._has_spoken()

    def _has_spoken(self) -> bool:
        if self.outcome is not None:
            return True
        said = select.poll()
        try:
            said.register(self._sock, select.POLLIN)
        except ValueError:  # another thread has just closed it
            return True
        return bool(said.poll(0))

    def wait_ready(self) -> None:
        """Waits until the runner is up and has answered what was sent ahead.

        Raises ContestantGone when it does not come, ContestantFailed when what was sent ahead fails.
        """
        if not self._ready:
            self._receive(time.monotonic() + START_SECONDS)
            self._ready = True
        if self._awaited:
            answer = self._receive(time.monotonic() + START_SECONDS)
            self._awaited = False
            self._checked(answer)

    def prepare(self, message: dict[str, Any]) -> None:
        """Sends the first request ahead, and returns. Raises ContestantGone when the process has ended."""
        self.prepared, self._awaited = message, True
        self._send(message)

    def serve_builds_with(self, build: BuildService) -> None:
        """Replaces the service for its builds, before anything is asked of it."""
        self._build = build

    def reset(self, seconds: float) -> None:
        """Has it let go of a reference, so that another may be loaded. Raises as `ask` does."""
        self.resume()
        self.ask({"op": "reset"}, seconds=seconds)
        self.page = self.prepared = None
        self.resets += 1

    def ask(
        self,
        message: dict[str, Any],
        *,
        seconds: float,
        fds: Sequence[int] = (),
        answers: Mapping[str, Answer] = MappingProxyType({}),
        meanwhile: Callable[[Callable[[], bool]], None] | None = None,
    ) -> dict[str, Any]:
        """Sends a request and returns the reply; requests served in between are off the clock.

        `answers`: to what the contestant may ask meanwhile, by its name. Where one gives None, the request is
        taken for the reply. `meanwhile` is called while something is awaited, with what says whether it came,
        or the time is up. Raises ContestantFailed when the candidate raised, ContestantGone when its process
        ended, spoke nonsense, or took longer than `seconds` (it is killed then).
        """
        deadline = time.monotonic() + seconds
        self._send(message, fds)
        while True:
            if meanwhile is not None:
                meanwhile(partial(self._is_over, deadline))
            reply = self._receive(deadline)
            began = time.monotonic()
            wanted = str(reply.get("op"))
            if wanted == "build":
                self._serve_build(reply.get("request"))
            elif wanted in answers and (answer := answers[wanted](reply)) is not None:
                self._send(answer)
            else:
                break
            deadline += time.monotonic() - began  # the trusted end's work is not on the candidate's clock
        return self._checked(reply)

    def _is_over(self, deadline: float) -> bool:
        return self._has_spoken() or time.monotonic() > deadline

    @staticmethod
    def _checked(reply: dict[str, Any]) -> dict[str, Any]:
        error = reply.get("error")
        if error is not None:
            raise ContestantFailed(error if isinstance(error, dict) else {})
        return reply

    def allow_memory(self, nbytes: int) -> None:
        """Sets another limit on the memory of its processes."""
        self._process.allow_memory(nbytes)

    def pids(self) -> tuple[int, ...]:
        """All its processes now, as this process numbers them."""
        return self._process.pids()

    def pause(self) -> None:
        """Holds the candidate still: no thread of it runs until `resume`.

        `held_still` says whether it stayed so.
        """
        self._process.pause()

    def halt(self) -> int:
        """Holds the candidate still while a clock runs. Returns when its last process came to rest, in
        nanoseconds of `perf_counter_ns`. `held_still` does not count this hold."""
        return self._process.halt()

    def look(self) -> float:
        """Looks whether the candidate stayed still while it was held, so that `resume` is quick. Returns the
        processor milliseconds that it used since `pause` was last called."""
        return self._process.look()

    def resume(self) -> None:
        """Lets the candidate go on."""
        self._process.resume()

    def output(self) -> str:
        """The last of what its processes have written to stdout and stderr, up to OUTPUT_KEPT characters of
        each: untrusted text. Empty when they wrote nothing."""
        said = zip(("stdout", "stderr"), self._process.output(), strict=True)
        return "\n".join(f"[{name}]\n{text[-OUTPUT_KEPT:].strip()}" for name, text in said if text.strip())

    def held_still(self) -> Held:
        """What it did while it was held, in all holds so far that were not brief."""
        return self._process.held_still()

    def end(self) -> Outcome:
        """Has the process end by itself, which takes END_SECONDS at most, and closes it: a program that
        watches it then says all that it saw."""
        with contextlib.suppress(ContestantGone):
            self._send({"op": "bye"})
            self._process.wait(END_SECONDS)
        return self.close()

    def close(self) -> Outcome:
        """Kills whatever is left and removes the scratch directory. Safe to call twice, from any thread.

        A thread that waits for an answer meanwhile gets ContestantGone.
        """
        with self._closing:
            if self.outcome is None:
                with contextlib.suppress(OSError):
                    self._sock.shutdown(socket.SHUT_RDWR)
                self.outcome = self._process.kill("closed")
                self._scratch.remove()
                self._sock.close()
            return self.outcome

    def __enter__(self) -> Contestant:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _send(self, message: dict[str, Any], fds: Sequence[int] = ()) -> None:
        try:
            wire.send(self._sock, message, fds)
        except OSError:
            raise self._gone("the process ended") from None

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
            self._process.wait(END_SECONDS)  # its own end, if that is what happened, rather than our kill
        return ContestantGone(why, self.close(), timed_out=timed_out)

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
        except ValidationError as error:
            return {"log": f"the arguments of load_inline are not usable: {explain(error)}"}, None
        build, descriptor = self._opened(request)
        self.builds.append(build)
        self.contents[request.content_sha256] = build
        if descriptor is None:
            return {"log": build.log[-100_000:]}, None
        return ({} if build.name == request.name else {"name": build.name}), descriptor

    def _opened(self, request: BuildRequest) -> tuple[Build, int | None]:
        """The build and its open library, if it has one. An open file stays, whatever the cache removes."""
        for _ in range(2):
            build = self._build(request)
            if build.state is not BuildState.OK or build.library is None:
                return build, None
            try:
                return build, os.open(build.library, os.O_RDONLY | os.O_CLOEXEC)
            except FileNotFoundError:  # the cache was cleared between the look and the opening
                continue
        log = "The library was removed from the cache of builds twice before it could be opened."
        return build.model_copy(
            update={"state": BuildState.INFRASTRUCTURE, "library": None, "log": log}
        ), None


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


def _text(error: dict[str, Any], field: str) -> str:
    """Untrusted text, bounded. JSON can bring halves of characters, which cannot be written as UTF-8."""
    value = error.get(field)
    return value[:20_000].encode("utf-8", "replace").decode() if isinstance(value, str) else ""


class ReadyBuilds:
    """Serves builds from the cache. A build that is not there the orchestrator makes, while another candidate
    has the device; then the first candidate comes again."""

    def __init__(
        self, builder: Builder, builds: Mapping[str, Build], build_seconds: float, *, hand_back: bool
    ) -> None:
        """`builds`: what was built for this candidate, by its content: a failure that no cache keeps, or the
        same under another name. `hand_back`: False after so many times that compilers run here."""
        self._builder, self._builds, self._build_seconds = builder, builds, build_seconds
        self._hand_back = hand_back
        self.seconds = 0.0
        """Wall seconds for which compilers ran."""

    def build(self, wanted: BuildRequest) -> Build:
        """The build. Raises NeedsBuild."""
        found = self._builder.ready(wanted)
        # A machine without a compiler has what another one built for it.
        if found is not None and found.state is not BuildState.UNAVAILABLE:
            return found
        before = self._builds.get(wanted.content_sha256)
        if before is not None and (before.state is not BuildState.OK or self._builder.holds([before.key])):
            return before
        if found is not None:
            return found
        if self._hand_back:
            raise NeedsBuild(wanted)
        began = time.monotonic()
        try:
            return self._builder.build(wanted, seconds=self._build_seconds)
        finally:
            self.seconds += time.monotonic() - began
