"""Sockets: one that listens, what is said where an address cannot be had, and the limit of open files, which
each connection of a process counts against.
"""

from __future__ import annotations

import errno
import ipaddress
import resource
import socket
import sys
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager

from kernelproof.errors import MachineError, UsageError

LOOPBACK = ("localhost", "127.0.0.1", "::1")
"""The names by which a machine knows itself."""


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
    # With the protocol named, asyncio sends the last bytes of an answer at once (TCP_NODELAY). Otherwise they
    # wait for the caller's acknowledgement, which a kept connection delays by 40 ms.
    listening = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
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


def is_ours(hosts: Sequence[str], names: Collection[str], server: str) -> bool:
    """Whether a request's `Host` headers name this server, and no foreign name that points to it.

    `names`: hosts under which it may be asked, beside `server`, the address that the connection came to.
    """
    if len(hosts) != 1:
        return False
    name = _name(hosts[0])
    return name in {each.casefold() for each in names} or (bool(name) and _same_address(name, server))


def _name(host: str) -> str:
    """The name in a header `Host`, without the port and without an IPv6 address's brackets."""
    if host.startswith("["):
        return host[1:].partition("]")[0].casefold()
    return host.rpartition(":")[0].casefold() if ":" in host else host.casefold()


def _same_address(name: str, server: str) -> bool:
    try:
        return ipaddress.ip_address(name) == ipaddress.ip_address(server)
    except ValueError:
        return False


def allow_open_files(needed: int, raise_to: int = 0) -> int:
    """The number of files that this process may have open: `needed`, where the system allows it.

    A limit below `needed` is raised as far as that goes, up to the larger of `needed` and `raise_to`.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != resource.RLIM_INFINITY and soft < needed:
        soft = max(needed, raise_to)
        soft = soft if hard == resource.RLIM_INFINITY else min(soft, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    return sys.maxsize if soft == resource.RLIM_INFINITY else soft
