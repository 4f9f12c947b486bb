"""How a confined process says that it is ready, and is let go.

Its stdin is one end of a socket pair: it writes a line when everything is in force, and goes on when it
reads one. Should we have died meanwhile it reads end-of-file and ends, so no job starts unwatched.
"""

from __future__ import annotations

import contextlib
import os
import select
import socket
from types import TracebackType
from typing import Self

from kernelproof.errors import SandboxError

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
