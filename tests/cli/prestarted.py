"""Commands without a start of Python: one process has the program imported, and forks for each command.

To start Python and to import what `leaderboard` needs takes 0.7 s of a processor. The tests run hundreds of
commands. Each is still a process with streams, a directory, variables and a session of its own.
"""

from __future__ import annotations

import array
import atexit
import json
import os
import select
import signal
import socket
import subprocess
import sys
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path

SERVER = Path(__file__).with_name("command_server.py").read_text()


class Command:
    """A command that runs."""

    def __init__(self, reply: socket.socket) -> None:
        self._reply = reply
        self.pid = self._number(60.0)
        self._code: int | None = None

    def poll(self) -> int | None:
        """Its exit code once it is over, and None before. Whoever polls need not `wait`."""
        if self._code is None and select.select([self._reply], [], [], 0)[0]:
            self._code = self._number(1.0)
            self._reply.close()
        return self._code

    def wait(self, timeout: float) -> int:
        """Its exit code, as `subprocess.Popen` gives it. After so many seconds it is killed: TimeoutError."""
        try:
            return self._number(timeout)
        except TimeoutError:
            os.killpg(self.pid, signal.SIGKILL)
            raise
        finally:
            self._reply.close()

    def _number(self, seconds: float) -> int:
        self._reply.settimeout(seconds)
        said = self._reply.recv(4, socket.MSG_WAITALL)
        assert len(said) == 4, "the process that starts commands is gone"
        return int.from_bytes(said, "little", signed=True)


def start(
    arguments: Sequence[object], *, environment: Mapping[str, str], directory: Path, streams: Sequence[int]
) -> Command:
    """Starts the program in a session of its own. `streams`: its standard input, output and error output."""
    ours, theirs = socket.socketpair()
    words = [str(word) for word in arguments]
    asked = {"arguments": words, "environment": dict(environment), "directory": str(directory)}
    message = json.dumps(asked).encode()
    server = _server(environment["PYTHONPATH"])
    with theirs:
        fds = array.array("i", [*streams, theirs.fileno()])
        server.sendmsg(
            [len(message).to_bytes(8, "little")], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, fds.tobytes())]
        )
        server.sendall(message)
    return Command(ours)


@cache
def _server(path: str) -> socket.socket:
    """Where commands are asked for; the process ends when nobody can ask any more."""
    ours, theirs = socket.socketpair()
    foreign = ("OPENAI_", "KERNELPROOF_")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(foreign)}
    process = subprocess.Popen(
        [sys.executable, "-P", "-c", SERVER, str(theirs.fileno())],
        env=kept | {"PYTHONPATH": path},
        cwd="/",
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        pass_fds=[theirs.fileno()],
        start_new_session=True,
        preexec_fn=interruptible,
    )
    theirs.close()
    atexit.register(process.wait, 10)
    atexit.register(ours.close)
    return ours


def interruptible() -> None:
    """A shell lets what it runs in the background ignore Ctrl-C, and so would all that starts from there."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
