"""One long-lived thread that starts every sandbox.

`bwrap --die-with-parent` asks the kernel for a signal at the end of the *thread* that forked it
(PR_SET_PDEATHSIG, prctl(2)), so a sandbox started from a worker thread would die with that worker.
"""

from __future__ import annotations

import os
import queue
import subprocess
import threading
from collections.abc import Callable
from concurrent.futures import Future

_Request = tuple[Callable[[], "subprocess.Popen[bytes]"], "Future[subprocess.Popen[bytes]]"]

_lock = threading.Lock()
_requests: queue.SimpleQueue[_Request] | None = None


def spawn(start: Callable[[], subprocess.Popen[bytes]]) -> subprocess.Popen[bytes]:
    """Calls `start` in the spawning thread and returns, or raises, what it did."""
    global _requests
    with _lock:
        if _requests is None:
            _requests = queue.SimpleQueue()
            threading.Thread(target=_serve, args=(_requests,), name="sandbox-spawner", daemon=True).start()
        requests = _requests
    future: Future[subprocess.Popen[bytes]] = Future()
    requests.put((start, future))
    return future.result()


def _serve(requests: queue.SimpleQueue[_Request]) -> None:
    while True:
        start, future = requests.get()
        try:
            future.set_result(start())
        except BaseException as problem:
            future.set_exception(problem)


def _forget() -> None:
    """A forked child has the queue but not the thread."""
    global _requests, _lock
    _requests, _lock = None, threading.Lock()


os.register_at_fork(after_in_child=_forget)
