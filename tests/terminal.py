"""A terminal for a process, and what comes out of it."""

from __future__ import annotations

import fcntl
import os
import pty
import select
import struct
import termios
import time
from collections.abc import Iterator


def opened(columns: int, rows: int = 40) -> tuple[int, int]:
    """Our end of a terminal of this size, and the end that a process gets."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
    return ours, theirs


def pieces(ours: int, seconds: float) -> Iterator[bytes]:
    """What is written, as it comes, until no process has the other end; our end is closed then.

    Raises TimeoutError when that takes more seconds.
    """
    deadline = time.monotonic() + seconds
    try:
        while select.select([ours], [], [], max(0.0, deadline - time.monotonic()))[0]:
            try:
                piece = os.read(ours, 1 << 16)
            except OSError:  # the other end is closed
                return
            yield piece
        raise TimeoutError(f"a process still has the terminal after {seconds} s")
    finally:
        os.close(ours)
