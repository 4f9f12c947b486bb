"""Connects to unix sockets of the harness, one with an abstract name and one with a path."""
# expect: ok

import os
import socket

got = []
for address in ("\0" + os.environ["FAULT_ABSTRACT"], os.environ["FAULT_SOCKET"]):
    try:
        socket.socket(socket.AF_UNIX, socket.SOCK_STREAM).connect(address)
        got.append(repr(address))
    except OSError as problem:
        print(problem)
raise SystemExit(", ".join(got) or 0)
