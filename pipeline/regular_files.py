"""Reading files of users: regular ones alone, and of bounded size.

`Path.read_bytes` waits at a pipe for whoever writes, and reads from `/dev/zero` until memory ends. A shell's
`<(...)` is a pipe that may be read: its path, `/dev/fd/63`, is one of our own descriptors.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO

MIB = 2**20
TEXT_BYTES = 64 * MIB
"""The most that is read of a program, an answer, a problem, a template or a configuration."""
LINES_BYTES = 4096 * MIB
"""The most that is read of a file of lines, such as a recording."""
_OWN = ("/dev/fd/", "/proc/self/fd/", "/dev/stdin")


class NotRegular(OSError):
    """A pipe, a socket or a device, which may have no end."""


def open_regular(path: Path) -> BinaryIO:
    """The file, opened without waiting. Raises OSError, with words for the user in `strerror`."""
    own = str(path).startswith(_OWN)
    _require_regular(path.stat().st_mode, own)  # to open some devices has an effect
    file = os.fdopen(os.open(path, os.O_RDONLY | os.O_CLOEXEC | (0 if own else os.O_NONBLOCK)), "rb")
    try:
        _require_regular(os.fstat(file.fileno()).st_mode, own)  # the path may lead elsewhere by now
    except OSError:
        file.close()
        raise
    return file


def read_regular(path: Path, most: int = TEXT_BYTES, allow: Callable[[Path], None] | None = None) -> bytes:
    """Everything in the file. Raises OSError as `open_regular` does, and for more than `most` bytes.

    `allow` is called with where the open file really lies, and raises what it likes.
    """
    with open_regular(path) as file:
        if allow is not None:
            allow(Path(f"/proc/self/fd/{file.fileno()}").readlink())
        small = os.fstat(file.fileno()).st_size <= most
        content = file.read(most + 1) if small else b""  # it may grow meanwhile
    if not small or len(content) > most:
        raise OSError(errno.EFBIG, f"it holds more than {most // MIB} MiB")
    return content


def _require_regular(mode: int, own: bool) -> None:
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
    if not (stat.S_ISREG(mode) or (own and stat.S_ISFIFO(mode))):
        raise NotRegular(errno.EINVAL, f"it is {_KINDS.get(stat.S_IFMT(mode), 'a device')}, no regular file")


_KINDS = {stat.S_IFIFO: "a pipe", stat.S_IFSOCK: "a socket"}
