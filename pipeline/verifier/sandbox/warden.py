"""The warden of one job in tiers C1, C2 and D: a small process that ends after all others of the job.

Run as a script, with the standard library alone: `python -I -S warden.py PLAN STATUS LIFELINE`, three
descriptors. PLAN holds the job as JSON. The warden confines a child, which becomes the job. As "child
subreaper" it inherits every orphan below it (prctl(2)), so the tree is empty exactly when it has no child
left. It ends the tree when the job ends or when LIFELINE reaches end-of-file (its harness let go of it, or
has died), and then writes to STATUS what came of it.
"""

from __future__ import annotations

import base64
import contextlib
import ctypes
import json
import os
import resource
import select
import signal
import socket
import struct
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn

_PR_SET_PDEATHSIG, _PR_SET_SECCOMP, _PR_SET_CHILD_SUBREAPER, _PR_SET_NO_NEW_PRIVS = 1, 22, 36, 38
_SECCOMP_MODE_FILTER = 2
_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF, _PATH_BENEATH = 444, 445, 446, 1
_NOT_CONFINED = 125
_COLLECT_MS = 200

_libc = ctypes.CDLL(None, use_errno=True)


class Warden:
    """The warden's side: waiting, collecting, ending."""

    def __init__(self, job: int, uid: int | None) -> None:
        self._job = job
        self._uid = uid
        self.status: int | None = None
        """The job's own wait status."""

    def wait(self, lifeline: int) -> None:
        """Until the job ends or the harness lets go."""
        poll = select.poll()
        poll.register(os.pidfd_open(self._job), select.POLLIN)
        poll.register(lifeline, select.POLLIN)
        while not poll.poll(_COLLECT_MS):
            self._collect()

    def end(self, grace_s: float) -> list[int]:
        """Kills all below us, again and again until nothing is left; what is left after `grace_s` seconds."""
        deadline = time.monotonic() + grace_s
        first = True
        while not self._collect():
            below = _descendants()
            for number in (signal.SIGSTOP, signal.SIGKILL) if first else (signal.SIGKILL,):
                for pid in below:  # stopped first, so that none forks while others are killed
                    with contextlib.suppress(ProcessLookupError, PermissionError):
                        os.kill(pid, number)
            if self._uid is not None:
                _kill_all_of(self._uid)
            if time.monotonic() > deadline:
                return _descendants()
            first = False
            time.sleep(0.002)
        return []

    def _collect(self) -> bool:
        """Waits for all that have ended; True when we have no child at all, so nothing is below us."""
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return True
            if pid == 0:
                return False
            if pid == self._job:
                self.status = status


def _descendants() -> list[int]:
    """All processes below the warden, by every process's parent."""
    children: dict[int, list[int]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with contextlib.suppress(OSError):
                text = (entry / "stat").read_bytes()
                parent = int(text[text.rindex(b")") + 2 :].split()[1])
                children.setdefault(parent, []).append(int(entry.name))
    found: list[int] = []
    todo = [os.getpid()]
    while todo:
        below = children.get(todo.pop(), [])
        found += below
        todo += below
    return found


def _kill_all_of(uid: int) -> None:
    """One call that kills every process of the job's own user id, however fast they fork."""
    if os.fork() == 0:
        try:
            os.setgroups([])
            os.setresgid(uid, uid, uid)
            os.setresuid(uid, uid, uid)
            os.kill(-1, signal.SIGKILL)
        finally:
            os._exit(0)


def become_job(plan: dict[str, Any]) -> NoReturn:
    """Confines this process, checks that it is, waits at the gate (stdin), and becomes the job."""
    try:
        os.setsid()
        Path("/proc/self/oom_score_adj").write_text("1000")
        for name, (soft, hard) in plan["limits"].items():
            resource.setrlimit(getattr(resource, name), (soft, hard))
        if plan["uid"] is not None:
            os.setgroups(plan["groups"])
            os.setresgid(plan["uid"], plan["uid"], plan["uid"])
            os.setresuid(plan["uid"], plan["uid"], plan["uid"])
        _prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)  # after the change of user, which clears it
        for path in plan["needed"]:
            if not os.access(path, os.R_OK):
                raise PermissionError(
                    f"user {os.getuid()} cannot reach {path}: chmod o+rx it and its parents"
                )
        os.chdir(plan["scratch"])
        _prctl(_PR_SET_NO_NEW_PRIVS, 1)
        if plan["landlock"] is not None:
            _restrict_files(**plan["landlock"])
        _filter_calls(base64.b64decode(plan["filter"]))
        _check(files=plan["landlock"] is not None)
        os.write(0, b"\n")
        if not os.read(0, 1):
            os._exit(_NOT_CONFINED)
        os.dup2(os.open("/dev/null", os.O_RDONLY), 0)
    except BaseException as problem:
        os.write(2, f"not confined: {problem}".encode())
        os._exit(_NOT_CONFINED)
    try:
        for number in (signal.SIGPIPE, signal.SIGXFSZ):  # Python ignores them, and exec would keep that
            signal.signal(number, signal.SIG_DFL)
        os.execvpe(plan["argv"][0], plan["argv"], plan["env"])
    except OSError as problem:
        os.write(2, f"{plan['argv'][0]}: {problem.strerror}\n".encode())
        os._exit(127)


def _prctl(option: int, value: int) -> None:
    if _libc.prctl(option, value, 0, 0, 0):
        raise OSError(ctypes.get_errno(), f"prctl {option}")


def _call(number: int, *arguments: Any) -> int:
    result: int = _libc.syscall(number, *arguments)
    if result < 0:
        raise OSError(ctypes.get_errno(), f"system call {number}: {os.strerror(ctypes.get_errno())}")
    return result


def _restrict_files(files: int, tcp: int, scopes: int, rules: list[tuple[str, int]]) -> None:
    """landlock(7). A path that cannot be opened is an error: a rule left out must not go unseen."""
    attributes = struct.pack("<QQQ", files, tcp, scopes)[: 24 if scopes else 16 if tcp else 8]
    ruleset = _call(_CREATE_RULESET, attributes, ctypes.c_size_t(len(attributes)), 0)
    for path, rights in rules:
        beneath = os.open(path, os.O_PATH | os.O_CLOEXEC)
        _call(_ADD_RULE, ruleset, _PATH_BENEATH, struct.pack("<Qi", rights, beneath), 0)
        os.close(beneath)
    _call(_RESTRICT_SELF, ruleset, 0)
    os.close(ruleset)


def _filter_calls(program: bytes) -> None:
    """seccomp(2) with a program of 8-byte instructions."""
    instructions = ctypes.create_string_buffer(program, len(program))
    header = struct.pack("@HxxxxxxQ", len(program) // 8, ctypes.addressof(instructions))
    if _libc.prctl(_PR_SET_SECCOMP, _SECCOMP_MODE_FILTER, header, 0, 0):
        raise OSError(ctypes.get_errno(), "the kernel took no system-call filter")


def _check(*, files: bool) -> None:
    """Tries what must fail. Listing `/` is open to every user and allowed by no rule of ours."""
    attempts: dict[str, Callable[[], None]] = {
        "a network socket": lambda: socket.socket(socket.AF_INET, socket.SOCK_STREAM).close()
    }
    if files:
        attempts["the root directory"] = lambda: os.close(os.open("/", os.O_RDONLY | os.O_DIRECTORY))
    for name, attempt in attempts.items():
        try:
            attempt()
        except PermissionError:
            continue
        raise RuntimeError(f"{name} could be opened")


def main() -> None:
    plan_fd, status_fd, lifeline = map(int, sys.argv[1:4])
    with os.fdopen(plan_fd) as file:
        plan = json.load(file)
    for descriptor in (status_fd, lifeline):
        os.set_inheritable(descriptor, False)
    _prctl(_PR_SET_CHILD_SUBREAPER, 1)
    job = os.fork()
    if job == 0:
        become_job(plan)
    for descriptor in (0, 1, 2, *plan["pass_fds"]):
        os.close(descriptor)  # so that their other ends see the job's own end, not ours
    warden = Warden(job, plan["uid"])
    warden.wait(lifeline)
    left = warden.end(plan["grace_s"])
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    report = {"status": warden.status, "left": left, "cpu_s": usage.ru_utime + usage.ru_stime}
    os.write(status_fd, json.dumps(report).encode())


if __name__ == "__main__":
    main()
