"""Reading files of users: regular ones alone, and of bounded size.

`Path.read_bytes` waits at a pipe for whoever writes, and reads from `/dev/zero` until memory ends. So every
file that a user names, or that lies in a folder that a user names, is read here. A shell's `<(...)` is a pipe
as well, and may be read: `/dev/fd/63` is one of our own descriptors.
"""

from __future__ import annotations

import errno
import io
import os
import stat
from pathlib import Path
from typing import BinaryIO

MIB = 2**20
TEXT_BYTES = 64 * MIB
"""The most that is read of a program, an answer, a problem, a template or a configuration."""
LINES_BYTES = 4096 * MIB
"""The most that is read of a file of lines, such as a recording."""
_OWN = ("/dev/fd/", "/proc/self/fd/", "/dev/stdin")


class NotRegular(OSError):
    """A pipe, a socket or a device, which has no end that could be known."""


def open_regular(path: Path) -> BinaryIO:
    """The file, opened without waiting. Raises OSError, with words for the user in `strerror`.

    What is opened is looked at again, since the path may lead elsewhere by then.
    """
    own = str(path).startswith(_OWN)
    _require_regular(path.stat().st_mode, own)  # to open some devices has an effect
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | (0 if own else os.O_NONBLOCK))
    try:
        _require_regular(os.fstat(descriptor).st_mode, own)
        return os.fdopen(descriptor, "rb")
    except OSError:
        os.close(descriptor)
        raise


def read_regular(path: Path, most: int = TEXT_BYTES) -> bytes:
    """Everything in the file. Raises OSError as `open_regular` does, and for more than `most` bytes."""
    with open_regular(path) as file:
        return read_bounded(file, most)


def read_regular_text(path: Path) -> str:
    """The text as `Path.read_text` gives it. Raises OSError, and UnicodeDecodeError for no UTF-8."""
    return io.StringIO(read_regular(path).decode("utf-8"), newline=None).read()


def read_bounded(file: BinaryIO, most: int) -> bytes:
    """Everything in an open file. Raises OSError for more than `most` bytes."""
    if os.fstat(file.fileno()).st_size <= most:
        content = file.read(most + 1)  # it may grow meanwhile
        if len(content) <= most:
            return content
    raise OSError(errno.EFBIG, f"it holds more than {most // MIB} MiB")


def _require_regular(mode: int, own: bool) -> None:
    if stat.S_ISREG(mode) or (own and stat.S_ISFIFO(mode)):
        return
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
    kind = "a pipe" if stat.S_ISFIFO(mode) else "a socket" if stat.S_ISSOCK(mode) else "a device"
    raise NotRegular(errno.EINVAL, f"it is {kind}, not a regular file")
