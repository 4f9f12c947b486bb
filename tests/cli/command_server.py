"""The process that forks for each command: `tests/cli/prestarted.py` runs this text as `python -c`.

So a command's `sys.path`, `sys.argv` and `__main__` are those of `program.PROGRAM`.
"""

from __future__ import annotations

import importlib
import json
import os
import pkgutil
import signal
import socket
import sys
from collections.abc import Sequence
from typing import Any

PARTS = ("cli", "runs", "report", "db", "verifier.engine", "providers", "problems", "prompting")
"""Packages that the orchestrator imports. None of them imports torch."""


def import_program() -> None:
    """Imports all that some command imports."""
    for name in ("anyio._backends._asyncio", "alembic.migration", "openai", "sqlalchemy.dialects.sqlite"):
        importlib.import_module(name)
    for part in PARTS:
        package = importlib.import_module(f"kernelproof.{part}")
        for found in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            if not found.name.endswith("__main__"):
                importlib.import_module(found.name)
    assert "torch" not in sys.modules


def serve(requests: socket.socket) -> None:
    """Returns in a command's process. A process between it and this one waits for it, and tells its end."""
    while True:
        size, fds, _, _ = socket.recv_fds(requests, 8, 4)
        if not size:
            os._exit(0)
        asked = requests.recv(int.from_bytes(size, "little"), socket.MSG_WAITALL)
        if os.fork() == 0:
            break
        for fd in fds:
            os.close(fd)
    requests.close()
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    *streams, reply = fds
    if command := os.fork():
        for fd in streams:
            os.close(fd)
        os.write(reply, command.to_bytes(4, "little"))
        _, status = os.waitpid(command, 0)
        os.write(reply, os.waitstatus_to_exitcode(status).to_bytes(4, "little", signed=True))
        os._exit(0)
    os.close(reply)
    become(json.loads(asked), streams)


def become(asked: dict[str, Any], streams: Sequence[int]) -> None:
    """Makes this process what was asked for."""
    os.setsid()
    for number, fd in enumerate(streams):
        os.dup2(fd, number)
        os.close(fd)
    os.chdir(asked["directory"])
    os.environ.clear()
    os.environ.update(asked["environment"])
    sys.argv[1:] = asked["arguments"]
    sys.stdout.reconfigure(line_buffering=os.isatty(1))  # type: ignore[union-attr]


if __name__ == "__main__":
    import_program()
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    serve(socket.socket(fileno=int(sys.argv[1])))
    from kernelproof.cli.app import main

    main()
