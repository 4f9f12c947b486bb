"""One long-lived thread that starts every sandbox.

`bwrap --die-with-parent` asks the kernel for a signal at the end of the *thread* that forked it
(PR_SET_PDEATHSIG, prctl(2)), so a sandbox started from a worker thread would die with that worker.

A child inherits the processors of the thread that forks it (sched_setaffinity(2)), so this is also where a
job gets those that it is to run on.
"""

from __future__ import annotations

import contextlib
import os
import queue
import subprocess
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future

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
