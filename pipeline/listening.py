"""Sockets that listen, and what is said where an address cannot be had."""

from __future__ import annotations

import errno
import ipaddress
import socket
from collections.abc import Iterator
from contextlib import contextmanager

from kernelproof.errors import MachineError, UsageError


@contextmanager
def listening_at(host: str, port: int) -> Iterator[socket.socket]:
    """A socket that listens; `port`: 0 takes a free one.

    Raises UsageError for a host that is none of this machine, MachineError for a port that cannot be had.
    """
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    except (socket.gaierror, UnicodeError):
        raise UsageError(
            f"--host {host!r} is no address of this machine; give one, such as 127.0.0.1 or ::1"
        ) from None
    family, _, _, _, address = found[0]
    listening = socket.socket(family, socket.SOCK_STREAM)
    with listening:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listening.bind(address)
            listening.listen()
        except OSError as error:
            raise _refusal(error, host, port) from None
        yield listening


def _refusal(error: OSError, host: str, port: int) -> UsageError | MachineError:
    if error.errno == errno.EADDRNOTAVAIL:
        return UsageError(f"--host {host!r} is no address of this machine; leave it out for 127.0.0.1")
    if error.errno == errno.EADDRINUSE:
        return MachineError(f"port {port} is in use; give another with --port, or 0 for any that is free")
    if error.errno == errno.EACCES:
        return MachineError(f"port {port} is not for everybody to take; give one above 1023 with --port")
    return MachineError(f"nothing can listen on {host} port {port}: {error.strerror}")


def in_url(host: str) -> str:
    """The host as URLs have it: an IPv6 address stands in brackets."""
    return f"[{host}]" if ":" in host else host


def is_local(host: str) -> bool:
    """Whether nobody on another machine reaches this address."""
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
