"""Bringing a job to the point where it runs confined, and taking it down again, for each kind of tier."""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import socket
import subprocess
import time
from dataclasses import dataclass
from typing import Protocol

from pipeline.errors import SandboxError
from pipeline.sandbox import bwrap, procfs, seccomp, slots
from pipeline.sandbox.model import Job, Tier
from pipeline.sandbox.paths import prepare_scratch
from pipeline.sandbox.spawner import spawn

START_S = 60.0
"""How long a sandbox may take to be ready on a loaded machine."""


@dataclass(frozen=True)
class Ended:
    """What is known when a tree was taken down."""

    exit_code: int | None
    signal: int | None
    cpu_s: float
    left: tuple[int, ...] = ()
    """Processes that could not be killed."""


class Launched(Protocol):
    """A confined tree that was let go."""

    root: int
    """The process that every process of the tree descends from."""
    stdout: int
    stderr: int
    exit_fd: int
    """Readable once the job's own first process has ended."""

    def end(self, grace_s: float) -> Ended:
        """Kills what still runs, and proves that nothing is left or says what is."""

    def close(self) -> None:
        """Closes the descriptors."""


def launch(job: Job, tier: Tier) -> Launched:
    """Starts the job in the given tier. Raises `SandboxError` with the tool's own words when it cannot."""
    if not job.argv or "=" in job.argv[0]:
        raise SandboxError("A job needs a command, whose first word has no '='.")
    if not job.scratch.is_absolute():
        raise SandboxError(f"The scratch path {job.scratch} is not absolute.")
    slot = slots.take() if tier in (Tier.A, Tier.C1) else None
    try:
        prepare_scratch(job.scratch, slot.uid if slot else None)
        if tier in (Tier.A, Tier.B):
            return BwrapTree(job, tier, slot)
        raise SandboxError("this tier is not written yet")
    except BaseException:
        if slot:
            slot.release()
        raise


class BwrapTree:
    """Tiers A and B. The whole tree lives in a pid namespace, which dies with its first process.

    The kernel ends the first process of a pid namespace only after it has killed and collected every other
    one in it (pid_namespaces(7)), so that process's pidfd becoming readable is the proof.
    """

    def __init__(self, job: Job, tier: Tier, slot: slots.Slot | None) -> None:
        self._slot = slot
        self._gate, far_gate = socket.socketpair()
        status_read, status_write = os.pipe2(os.O_CLOEXEC)
        filter_fd = _memory_file(seccomp.program(unix_sockets=True))
        try:
            argv = bwrap.command(job, tier, slot.uid if slot else None, status_write, filter_fd)
            self._child = spawn(
                lambda: subprocess.Popen(
                    argv,
                    env=bwrap.START_ENVIRONMENT,
                    cwd="/",
                    stdin=far_gate.fileno(),
                    stdout=subprocess.PIPE,
                    stderr=subprocess.PIPE,
                    pass_fds=(*job.pass_fds, status_write, filter_fd),
                    start_new_session=True,
                )
            )
        except BaseException as problem:
            self._gate.close()
            os.close(status_read)
            if isinstance(problem, OSError):
                raise SandboxError(f"{bwrap.find()} cannot be started: {problem}.") from problem
            raise
        finally:
            far_gate.close()
            os.close(status_write)
            os.close(filter_fd)
        assert self._child.stdout is not None and self._child.stderr is not None
        self.root = self._child.pid
        self.stdout, self.stderr = self._child.stdout.fileno(), self._child.stderr.fileno()
        self.exit_fd = os.pidfd_open(self.root)
        self._status_fd = status_read
        self._init_fd = -1
        for descriptor in (self.stdout, self.stderr):
            os.set_blocking(descriptor, False)
        try:
            self._open_gate()
        except BaseException:
            self.end(START_S)
            self.close()
            raise

    def _open_gate(self) -> None:
        """Waits until the job stands confined at its gate, then lets it go."""
        self._gate.settimeout(START_S)
        try:
            ready = self._gate.recv(1)
        except TimeoutError:
            ready = b""
        if not ready:
            raise SandboxError(self._refusal())
        first_line = os.read(self._status_fd, 4096).split(b"\n")[0]
        self._init_fd = os.pidfd_open(json.loads(first_line)["child-pid"])
        procfs.prefer_for_oom_kill(self.root)
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            self._gate.sendall(b"\n")
        self._gate.close()

    def _refusal(self) -> str:
        """bwrap's own words."""
        select.select([self.exit_fd], [], [], 1.0)
        try:
            text = os.read(self.stderr, 1 << 14).decode(errors="replace").strip()
        except BlockingIOError:
            text = ""
        return f"bwrap made no sandbox: {text or 'it gave no reason'}"

    def end(self, grace_s: float) -> Ended:
        """Kills the namespace's first process, and bwrap's outer one, and waits for both."""
        deadline = time.monotonic() + grace_s
        gone = True
        for descriptor in (self._init_fd, self.exit_fd):
            if descriptor >= 0:
                with contextlib.suppress(ProcessLookupError):
                    signal.pidfd_send_signal(descriptor, signal.SIGKILL)
                gone = gone and _readable(descriptor, deadline)
        if not gone:
            return Ended(None, None, 0.0, tuple(procfs.descendants(self.root)))
        _, status, usage = os.wait4(self.root, 0)
        self._child.returncode = code = os.waitstatus_to_exitcode(status)
        if self._slot:
            self._slot.release()
        cpu_s = usage.ru_utime + usage.ru_stime
        if code < 0:
            return Ended(None, -code, cpu_s)
        # bwrap passes a signal on as 128 + its number, as a shell does
        return Ended(None, code - 128, cpu_s) if code > 128 else Ended(code, None, cpu_s)

    def close(self) -> None:
        """Closes every descriptor; a tree that could not be killed keeps its user id for good."""
        self._gate.close()
        for stream in (self._child.stdout, self._child.stderr):
            if stream is not None:
                stream.close()
        for descriptor in (self.exit_fd, self._status_fd, self._init_fd):
            if descriptor >= 0:
                os.close(descriptor)


def _memory_file(content: bytes) -> int:
    descriptor = os.memfd_create("sandbox", os.MFD_CLOEXEC)
    os.write(descriptor, content)
    os.lseek(descriptor, 0, os.SEEK_SET)
    return descriptor


def _readable(descriptor: int, deadline: float) -> bool:
    poll = select.poll()
    poll.register(descriptor, select.POLLIN)
    return bool(poll.poll(max(0.0, deadline - time.monotonic()) * 1000))
