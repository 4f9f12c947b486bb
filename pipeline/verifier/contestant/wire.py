"""The wire between processes: length-prefixed JSON over a socketpair, never pickle.

A frame is a 4-byte big-endian length and that many bytes of UTF-8 JSON holding one object. File descriptors
may ride with a frame from a trusted sender (`SCM_RIGHTS`); a receiver that does not ask for them never takes
them. Messages of a contestant are untrusted: they are bounded here and validated by the referee.
"""

from __future__ import annotations

import fcntl
import json
import os
import socket
import struct
from collections.abc import Sequence
from typing import Any

MAX_FRAME = 16 << 20
"""Most bytes of one frame: sources and compile logs fit, floods do not."""

MAX_DEPTH = 64
"""Deepest nesting of a message: code that walks through one may recurse."""

_HEADER = struct.Struct(">I")


class WireError(Exception):
    """The other side broke the protocol, or went away in the middle of a frame."""


class WireClosed(WireError):
    """The other side closed the connection between two frames."""


def sealed_file(name: str, nbytes: int) -> int:
    """A descriptor of memory that nobody can make shorter or longer: a process that reads beyond the end of a
    file is killed."""
    descriptor = os.memfd_create(name, os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    os.ftruncate(descriptor, nbytes)
    fcntl.fcntl(descriptor, fcntl.F_ADD_SEALS, fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_SEAL)
    return descriptor


def send(sock: socket.socket, message: dict[str, Any], fds: Sequence[int] = ()) -> None:
    """Sends one frame; `fds` are duplicated into the receiver. Raises OSError when the peer is gone."""
    body = json.dumps(message, separators=(",", ":"), allow_nan=False).encode("utf-8", "surrogatepass")
    if len(body) > MAX_FRAME:
        raise WireError(f"a frame of {len(body)} bytes exceeds {MAX_FRAME}")
    header = _HEADER.pack(len(body))
    if fds:
        socket.send_fds(sock, [header], list(fds))
        sock.sendall(body)
    else:
        sock.sendall(header + body)


def receive(sock: socket.socket, *, max_fds: int = 0) -> tuple[dict[str, Any], list[int]]:
    """Receives one frame and at most `max_fds` descriptors. Obeys the socket's timeout.

    Raises WireClosed at a clean end, WireError for anything that is no frame, TimeoutError when nothing
    came in time.
    """
    fds: list[int] = []
    if max_fds:
        first, fds, _, _ = socket.recv_fds(sock, _HEADER.size, max_fds)
        header = bytes(first)
    else:
        header = sock.recv(_HEADER.size)
    if not header:
        raise WireClosed("the connection was closed")
    header += _exactly(sock, _HEADER.size - len(header))
    (length,) = _HEADER.unpack(header)
    if length > MAX_FRAME:
        raise WireError(f"a frame claims {length} bytes; at most {MAX_FRAME} are taken")
    return parse(_exactly(sock, length)), fds


def parse(body: bytes) -> dict[str, Any]:
    """The message in a frame's body. Raises WireError for anything else, however deep or malformed."""
    try:
        message = json.loads(body.decode("utf-8", "surrogatepass"), parse_constant=_no_constant)
    except (ValueError, RecursionError) as error:
        raise WireError(f"a frame is not JSON: {type(error).__name__}") from None
    if not isinstance(message, dict):
        raise WireError(f"a frame holds a {type(message).__name__}, not an object")
    if _deeper(message, MAX_DEPTH):
        raise WireError(f"a frame is nested deeper than {MAX_DEPTH}")
    return message


def _deeper(message: dict[str, Any], most: int) -> bool:
    level: list[Any] = [message]
    for _ in range(most):
        children = (item.values() if isinstance(item, dict) else item for item in level)
        level = [child for some in children for child in some if isinstance(child, dict | list)]
        if not level:
            return False
    return True


def _no_constant(name: str) -> float:
    raise ValueError(f"{name} is not JSON")


def _exactly(sock: socket.socket, count: int) -> bytes:
    chunks = []
    while count:
        chunk = sock.recv(min(count, 1 << 20))
        if not chunk:
            raise WireError("the connection ended in the middle of a frame")
        chunks.append(chunk)
        count -= len(chunk)
    return b"".join(chunks)
