"""A job in tiers A and B: the whole tree lives in a pid namespace, which dies with its first process."""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import subprocess
import time

from kernelproof.errors import SandboxError
from kernelproof.verifier.sandbox import bwrap, procfs, seccomp, slots, sweeping
from kernelproof.verifier.sandbox.freezer import Freezer
from kernelproof.verifier.sandbox.model import Job, Tier
from kernelproof.verifier.sandbox.tree import START_S, Ended, Gate, freezer_for, spawn


class BwrapTree:
    """The tree below one bwrap process.

    The kernel ends the first process of a pid namespace only after it has killed and collected every other
    one in it (pid_namespaces(7)), so that process's pidfd becoming readable proves the tree empty.
    """

    def __init__(self, job: Job, tier: Tier, slot: slots.Slot | None) -> None:
        """Starts the job and lets it go. Raises `SandboxError` with bwrap's own words when it cannot."""
        self._slot = slot
        self._init_fd = -1
        self.freezer: Freezer | None = None
        with Gate() as gate:
            self._child, self._status_fd = _spawn(job, tier, slot, gate)
            assert self._child.stdout is not None and self._child.stderr is not None
            self.root = self._child.pid
            self.stdout, self.stderr = self._child.stdout.fileno(), self._child.stderr.fileno()
            for descriptor in (self.stdout, self.stderr):
                os.set_blocking(descriptor, False)
            self.exit_fd = os.pidfd_open(self.root)
            try:
                gate.await_ready(self.stderr, self.exit_fd)
                first_line = os.read(self._status_fd, 4096).split(b"\n")[0]
                self._init_fd = os.pidfd_open(json.loads(first_line)["child-pid"])
                procfs.step_back(self.root, job.nice, killed_first=True)
                self.freezer = freezer_for(job, self.root)
                gate.let_go()
            except BaseException:
                self.end(START_S)
                self.close()
                raise

    def end(self, grace_s: float) -> Ended:
        """Kills the namespace's first process, then bwrap's outer one, and waits for both."""
        deadline = time.monotonic() + grace_s
        gone = True
        for descriptor in (self._init_fd, self.exit_fd):
            if descriptor >= 0:
                with contextlib.suppress(ProcessLookupError):
                    signal.pidfd_send_signal(descriptor, signal.SIGKILL)
                gone = _readable(descriptor, deadline) and gone
        if not gone:  # its user id stays taken
            return Ended(None, None, 0.0, tuple(procfs.descendants(self.root)))
        _, status, usage = os.wait4(self.root, 0)
        self._child.returncode = code = os.waitstatus_to_exitcode(status)
        if self._slot:
            self._slot.release()
        cpu_s = usage.ru_utime + usage.ru_stime
        if code < 0:
            return Ended(None, -code, cpu_s)
        # bwrap passes a signal on as 128 + its number, as a shell does. 255 is the program's own.
        by_signal = 128 < code < 128 + signal.NSIG
        return Ended(None, code - 128, cpu_s) if by_signal else Ended(code, None, cpu_s)

    def close(self) -> None:
        """Closes every descriptor."""
        for stream in (self._child.stdout, self._child.stderr):
            if stream is not None:
                stream.close()
        for descriptor in (self.exit_fd, self._status_fd, self._init_fd):
            if descriptor >= 0:
                os.close(descriptor)
        if self.freezer is not None:
            self.freezer.close()


def _spawn(job: Job, tier: Tier, slot: slots.Slot | None, gate: Gate) -> tuple[subprocess.Popen[bytes], int]:
    """bwrap's outer process, and where its JSON lines are read."""
    status_read, status_write = os.pipe2(os.O_CLOEXEC)
    filter_fd = os.memfd_create("filter", os.MFD_CLOEXEC)
    try:
        os.write(filter_fd, seccomp.program(unix_sockets=True))
        os.lseek(filter_fd, 0, os.SEEK_SET)
        argv = bwrap.command(job, tier, slot.uid if slot else None, status_write, filter_fd)
        environment = sweeping.environment()
        child = spawn(
            lambda: subprocess.Popen(
                argv,
                env=environment,
                cwd="/",
                stdin=gate.far.fileno(),
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                pass_fds=(*job.pass_fds, status_write, filter_fd),
                start_new_session=True,
            ),
            job.cores,
        )
    except BaseException as problem:
        os.close(status_read)
        if isinstance(problem, OSError):
            raise SandboxError(f"{bwrap.find()} cannot be started: {problem}.") from problem
        raise
    finally:
        os.close(status_write)
        os.close(filter_fd)
    return child, status_read


def _readable(descriptor: int, deadline: float) -> bool:
    poll = select.poll()
    poll.register(descriptor, select.POLLIN)
    return bool(poll.poll(max(0.0, deadline - time.monotonic()) * 1000))
