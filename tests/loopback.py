"""HTTP servers on loopback, for tests and benchmarks."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


class Quiet(BaseHTTPRequestHandler):
    """A handler that writes no line for each request."""

    def log_message(self, *_: Any) -> None:
        """Nothing: the test's output stays clean."""


@contextmanager
def serving(handler: type[Quiet], port: int = 0) -> Iterator[str]:
    """The URL of a server, without a path, until the block ends. `port`: 0 takes a free one."""
    server = ThreadingHTTPServer(("127.0.0.1", port), handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
