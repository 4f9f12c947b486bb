"""A job in tiers C1, C2 and D: the tree below one warden process."""

from __future__ import annotations

import base64
import dataclasses
import json
import os
import select
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from kernelproof.errors import SandboxError
from kernelproof.verifier.sandbox import bwrap, landlock, procfs, seccomp
from kernelproof.verifier.sandbox.model import Job, Tier
from kernelproof.verifier.sandbox.pausing import Freezer
from kernelproof.verifier.sandbox.tree import Gate, Slot, TreeEnd, freezer_for, spawn

WARDEN = Path(__file__).with_name("warden.py")
WARDEN_GRACE_S = 9.0
"""How long the warden goes on killing before it reports what is left."""


class WardenTree:
    """The tree below one warden, which kills it, proves it empty by having no child, and reports."""

    def __init__(self, job: Job, tier: Tier, slot: Slot | None) -> None:
        """Starts the job and lets it go. Raises `SandboxError` when it cannot be confined in this tier."""
        self._slot = slot
        self.freezer: Freezer | None = None
        plan = _plan(job, tier, slot)
        with Gate() as gate:
            self._child, self.exit_fd, self._lifeline = _spawn(job, plan, gate)
            assert self._child.stdout is not None and self._child.stderr is not None
            self.root = self._child.pid
            self.stdout, self.stderr = self._child.stdout.fileno(), self._child.stderr.fileno()
            for descriptor in (self.stdout, self.stderr):
                os.set_blocking(descriptor, False)
            try:
                gate.await_ready(self.stderr, self.exit_fd)
                procfs.step_back(self.root, job.nice)
                if tier is not Tier.D:  # there it could leave a group that the caller's user may change
                    self.freezer = freezer_for(job, self.root)
                gate.let_go()
            except BaseException:
                self.end(2 * WARDEN_GRACE_S)
                self.close()
                raise

    def end(self, grace_s: float) -> TreeEnd:
        """Lets go of the warden, which ends the tree, and waits for its report and its end."""
        self._release_lifeline()
        report = self._report(time.monotonic() + grace_s)
        if report is None:  # it hangs or was killed: nothing is proven, and the user id stays taken
            return TreeEnd(None, None, 0.0, tuple(procfs.descendants(self.root)))
        if report["left"]:
            return TreeEnd(None, None, report["cpu_s"], tuple(report["left"]))
        os.waitpid(self.root, 0)
        self._child.returncode = 0
        if self._slot:
            self._slot.release()
        if report["status"] is None:
            return TreeEnd(None, None, report["cpu_s"])
        code = os.waitstatus_to_exitcode(report["status"])
        return TreeEnd(None, -code, report["cpu_s"]) if code < 0 else TreeEnd(code, None, report["cpu_s"])

    def close(self) -> None:
        """Closes every descriptor."""
        self._release_lifeline()
        for stream in (self._child.stdout, self._child.stderr):
            if stream is not None:
                stream.close()
        os.close(self.exit_fd)
        if self.freezer is not None:
            self.freezer.close()

    def _release_lifeline(self) -> None:
        if self._lifeline >= 0:
            os.close(self._lifeline)
            self._lifeline = -1

    def _report(self, deadline: float) -> dict[str, Any] | None:
        ready, _, _ = select.select([self.exit_fd], [], [], max(0.0, deadline - time.monotonic()))
        text = os.read(self.exit_fd, 1 << 16) if ready else b""
        return json.loads(text) if text else None


def _spawn(job: Job, plan: bytes, gate: Gate) -> tuple[subprocess.Popen[bytes], int, int]:
    """The warden, where its report is read, and our end of its lifeline."""
    status_read, status_write = os.pipe2(os.O_CLOEXEC)
    lifeline_read, lifeline_write = os.pipe2(os.O_CLOEXEC)
    plan_fd = os.memfd_create("plan", os.MFD_CLOEXEC)
    given = (plan_fd, status_write, lifeline_read)
    try:
        os.write(plan_fd, plan)
        os.lseek(plan_fd, 0, os.SEEK_SET)
        child = spawn(
            lambda: subprocess.Popen(
                [sys.executable, "-I", "-S", str(WARDEN), *map(str, given)],
                env=bwrap.START_ENVIRONMENT,
                cwd="/",
                stdin=gate.far.fileno(),
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                pass_fds=(*job.pass_fds, *given),
                start_new_session=True,
            ),
            job.cores,
        )
    except BaseException:
        os.close(status_read)
        os.close(lifeline_write)
        raise
    finally:
        for descriptor in given:
            os.close(descriptor)
    return child, status_read, lifeline_write


def _plan(job: Job, tier: Tier, slot: Slot | None) -> bytes:
    """The job as `warden.py` reads it."""
    rules = landlock.ruleset(job) if tier is not Tier.D else None
    if rules is None and tier is not Tier.D:
        raise SandboxError("this kernel has no Landlock (5.13 or later, enabled at boot)")
    signals = slot is not None or (rules is not None and rules.scopes != 0)
    plan = {
        "argv": job.argv,
        "env": bwrap.environment(job),
        "scratch": str(job.scratch),
        "needed": [str(path) for path in (job.scratch, *job.read_only)],
        "uid": slot.uid if slot else None,
        "groups": bwrap.device_groups(job) if slot else [],
        "limits": _limits(job, slot),
        "landlock": dataclasses.asdict(rules) if rules else None,
        "filter": base64.b64encode(seccomp.program(unix_sockets=bool(job.gpus), signals=signals)).decode(),
        "pass_fds": job.pass_fds,
        "grace_s": WARDEN_GRACE_S,
    }
    return json.dumps(plan).encode()


def _limits(job: Job, slot: Slot | None) -> dict[str, tuple[int, int]]:
    """Soft and hard limits by their names in `resource`."""
    limits = {
        "RLIMIT_CORE": 0,
        "RLIMIT_CPU": max(1, round(job.limits.cpu_s)),
        "RLIMIT_FSIZE": job.limits.file_bytes,
        "RLIMIT_NOFILE": job.limits.open_files,
        # The kernel counts all processes of a user: with no user id of its own, the job's come on top.
        "RLIMIT_NPROC": job.limits.processes + (0 if slot else procfs.threads_of(os.getuid())),
    }
    if job.limits.address_space_bytes is not None:
        limits["RLIMIT_AS"] = job.limits.address_space_bytes
    # one second between the signal that names the reason and the end
    return {name: (value, value + (name == "RLIMIT_CPU")) for name, value in limits.items()}
