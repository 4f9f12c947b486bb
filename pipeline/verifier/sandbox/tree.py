"""What the ways of confining a job have in common: the interface for the job's watcher, the gate, the
spawner, and user ids for jobs that root starts (`Slot`).

The gate: a confined process has one end of a socket pair as its stdin. It writes a line when everything is
in force, and goes on when it reads one. Should we have died meanwhile it reads end-of-file and ends, so no
job starts unwatched.

The spawner: one long-lived thread starts every sandbox. `bwrap --die-with-parent` asks the kernel for a
signal at the end of the *thread* that forked it (PR_SET_PDEATHSIG, prctl(2)), so a sandbox started from a
worker thread would die with that worker. A child inherits the processors of the thread that forks it
(sched_setaffinity(2)), so this is also where a job gets those that it is to run on.
"""

from __future__ import annotations

import contextlib
import os
import pwd
import queue
import random
import select
import socket
import subprocess
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Protocol, Self

from kernelproof.errors import SandboxError
from kernelproof.verifier.sandbox import procfs
from kernelproof.verifier.sandbox.model import Job, Tier
from kernelproof.verifier.sandbox.pausing import Freezer


@dataclass(frozen=True)
class TreeEnd:
    """How a tree of processes ended."""

    exit_code: int | None
    signal: int | None
    cpu_s: float
    left: tuple[int, ...] = ()
    """Processes that could not be killed, or not be proven gone."""


class Tree(Protocol):
    """The processes of one job, confined and let go."""

    root: int
    """The process that every process of the tree descends from."""
    stdout: int
    stderr: int
    """Descriptors to read from, non-blocking."""
    exit_fd: int
    """Readable once the job's own first process has ended."""
    freezer: Freezer | None
    """The control group of all below `root`, if the job has one; `close` removes it."""

    def end(self, grace_s: float) -> TreeEnd:
        """Kills what still runs, and proves that nothing is left or says what is. To be called once."""

    def close(self) -> None:
        """Closes the descriptors."""


def freezer_for(job: Job, root: int) -> Freezer | None:
    """A control group with all that is below `root`. Made before the job is let go, it holds what that starts
    as well."""
    if not job.pausable:
        return None
    return Freezer.of(pid for pid in procfs.descendants(root) if pid != root)


START_S = 60.0
"""How long a sandbox may take to be ready on a loaded machine."""


class Gate:
    """Our end; `far` goes to the child as stdin. To be used in a `with` block, which closes both."""

    def __init__(self) -> None:
        self._near, self.far = socket.socketpair()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._near.close()
        self.far.close()

    def await_ready(self, stderr: int, exit_fd: int) -> None:
        """Waits for the child's line. Raises `SandboxError` with what it wrote to stderr when none comes."""
        self.far.close()
        self._near.settimeout(START_S)
        try:
            ready = self._near.recv(1)
        except (TimeoutError, ConnectionResetError):
            ready = b""
        if ready:
            return
        select.select([exit_fd], [], [], 1.0)
        try:
            words = os.read(stderr, 1 << 14).decode(errors="replace").strip()
        except BlockingIOError:
            words = ""
        raise SandboxError(words or f"the sandbox was not ready within {START_S:g} s and gave no reason")

    def let_go(self) -> None:
        """Sends the line that the child waits for."""
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            self._near.sendall(b"\n")


_Start = Callable[[], "subprocess.Popen[bytes]"]
_Request = tuple[_Start, Sequence[int], "Future[subprocess.Popen[bytes]]"]

_lock = threading.Lock()
_requests: queue.SimpleQueue[_Request] | None = None


def spawn(start: _Start, cores: Sequence[int] = ()) -> subprocess.Popen[bytes]:
    """Calls `start` in the spawning thread, on these processors, and returns, or raises, what it did.

    `cores`: none named: those of this process when it started its first sandbox.
    """
    global _requests
    with _lock:
        if _requests is None:
            _requests = queue.SimpleQueue()
            threading.Thread(target=_serve, args=(_requests,), name="sandbox-spawner", daemon=True).start()
        requests = _requests
    future: Future[subprocess.Popen[bytes]] = Future()
    requests.put((start, cores, future))
    return future.result()


def _serve(requests: queue.SimpleQueue[_Request]) -> None:
    own = os.sched_getaffinity(0)
    while True:
        start, cores, future = requests.get()
        with contextlib.suppress(OSError):  # taken from us meanwhile: it runs where it may
            os.sched_setaffinity(0, cores or own)
        try:
            future.set_result(start())
        except BaseException as problem:
            future.set_exception(problem)


def _forget() -> None:
    """A forked child has the queue but not the thread."""
    global _requests, _lock
    _requests, _lock = None, threading.Lock()


os.register_at_fork(after_in_child=_forget)


FIRST_UID, UID_COUNT = 60_800, 256


class Slot:
    """A user id (and group id, the same number) for a job that root starts, held until `release`.

    The range lies in the part that systemd's UID table leaves unused, below its dynamic users. An id is held
    by a bound abstract unix socket, which the kernel releases however the holder ends: no other kernelproof
    process has it meanwhile.
    """

    def __init__(self, uid: int, lock: socket.socket) -> None:
        self.uid = uid
        self._lock = lock

    def release(self) -> None:
        self._lock.close()


def needs_slot(tier: Tier) -> bool:
    """Whether a job of this tier gets a user id of its own: always when root starts it."""
    return tier in (Tier.A, Tier.C1) or (tier is Tier.D and os.geteuid() == 0)


def slots_exist() -> bool:
    """Whether this user namespace has the user ids: one that maps its own root only, say, has not."""
    for line in Path("/proc/self/uid_map").read_text().splitlines():
        first, _, count = map(int, line.split())
        if first <= FIRST_UID and first + count >= FIRST_UID + UID_COUNT:
            return True
    return False


def take_slot() -> Slot:
    """Holds a free user id. Raises `SandboxError` when all are taken."""
    taken = {entry.pw_uid for entry in pwd.getpwall()} | _uids_in_use()
    for uid in random.sample(range(FIRST_UID, FIRST_UID + UID_COUNT), UID_COUNT):
        if uid in taken:
            continue
        lock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            lock.bind(f"\0kernelproof-uid-{uid}")
        except OSError:
            lock.close()
            continue
        return Slot(uid, lock)
    raise SandboxError(
        f"All {UID_COUNT} sandbox user ids from {FIRST_UID} are in use: run fewer jobs at once."
    )


def _uids_in_use() -> set[int]:
    """User ids of the processes that can be seen: one left over from a lost job is not used again."""
    uids = set()
    with os.scandir("/proc") as entries:
        for entry in entries:
            if entry.name.isdigit():
                try:
                    uids.add(entry.stat().st_uid)
                except OSError:
                    continue
    return uids
