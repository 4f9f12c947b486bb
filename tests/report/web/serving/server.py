"""`kernelproof serve` as a process of its own, and real HTTP to it."""

from __future__ import annotations

import json
import re
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from http.client import HTTPConnection, HTTPResponse
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from tests.cli import prestarted
from tests.cli.program import PROGRAM, ROOT
from tests.report.web.parsed import Parsed


@dataclass
class Server:
    """A server that runs."""

    process: subprocess.Popen[str]
    address: str
    """With a slash at its end."""
    said: str
    """Its first line."""

    @property
    def port(self) -> int:
        return urlsplit(self.address).port or 0

    def ask(self, path: str = "/", method: str = "GET", **headers: str) -> tuple[HTTPResponse, str]:
        """The answer with its text."""
        connection = HTTPConnection("127.0.0.1", self.port, timeout=30)
        try:
            connection.request(method, path, headers=headers)
            answer = connection.getresponse()
            return answer, answer.read().decode()
        finally:
            connection.close()

    def page(self, path: str = "/") -> Parsed:
        """A page that is there."""
        answer, text = self.ask(path)
        assert answer.status == 200, text
        return Parsed(text)

    def state(self) -> dict[str, Any]:
        """The state of the database, which an open page asks for."""
        answer, text = self.ask("/state")
        assert answer.status == 200, text
        return dict(json.loads(text))

    def stop(self, number: int = signal.SIGINT) -> tuple[int, str]:
        """Exit code after a signal, and what it wrote to stderr."""
        self.process.send_signal(number)
        _, errors = self.process.communicate(timeout=30)
        return self.process.returncode, errors


def until(happened: Callable[[], bool]) -> None:
    """Returns when something has happened; fails after 30 s."""
    for _ in range(300):
        if happened():
            return
        time.sleep(0.1)
    raise AssertionError("it did not happen")


def command(workspace: Path, *options: object, within: Sequence[str] = ()) -> subprocess.Popen[str]:
    """Starts `kernelproof serve`. `within`: a program that starts it."""
    return subprocess.Popen(
        [*within, *PROGRAM, "serve", "--workspace", str(workspace), *map(str, options)],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        cwd=ROOT,
        preexec_fn=prestarted.interruptible,
    )


@contextmanager
def serving(workspace: Path, *options: object, within: Sequence[str] = ()) -> Iterator[Server]:
    """A server on a free port, until the block ends."""
    process = command(workspace, "--port", 0, *options, within=within)
    try:
        assert process.stdout is not None
        said = process.stdout.readline()
        found = re.search(r"http://\S+", said)
        assert found is not None, process.communicate(timeout=10)
        yield Server(process, found[0], said)
    finally:
        if process.poll() is None:
            process.kill()
        process.communicate(timeout=30)


def taken_port() -> socket.socket:
    """A socket that listens on a free port."""
    return socket.create_server(("127.0.0.1", 0))
