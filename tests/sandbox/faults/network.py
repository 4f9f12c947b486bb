"""Connects to a listening harness by TCP, sends UDP, asks a name server, opens raw and kernel sockets."""
# expect: ok

import os
import socket

port = int(os.environ["FAULT_PORT"])
got = []


def attempt(name, action):
    try:
        action()
        got.append(name)
    except OSError as problem:
        print(name, problem)


attempt("tcp", lambda: socket.create_connection(("127.0.0.1", port), timeout=2))
attempt("udp", lambda: socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b"x", ("127.0.0.1", port)))
attempt("tcp6", lambda: socket.socket(socket.AF_INET6, socket.SOCK_STREAM))
attempt("dns", lambda: socket.getaddrinfo("example.org", 80))
for family in ("AF_NETLINK", "AF_PACKET", "AF_VSOCK", "AF_ALG"):
    for kind in (socket.SOCK_RAW, socket.SOCK_DGRAM, socket.SOCK_STREAM, socket.SOCK_SEQPACKET):
        attempt(family, lambda: socket.socket(getattr(socket, family), kind))
raise SystemExit(", ".join(got) or 0)
