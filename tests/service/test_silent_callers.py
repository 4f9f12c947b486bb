"""Callers that ask and never read: others are served meanwhile, and get their results."""

from __future__ import annotations

import socket
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.cli.program import Program, kill
from tests.service.conftest import Running, serving
from tests.service.test_judges import until

EACH = 150
"""Callers of a kind: more than a service has threads for its database."""


def silent(service: Running, path: str) -> socket.socket:
    """A connection that has sent a request for `path`, and never reads the answer."""
    host, port = service.url.removeprefix("http://").split(":")
    connection = socket.create_connection((host, int(port)))
    connection.sendall(f"GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
    return connection


@pytest.mark.ci
def test_callers_that_wait_and_never_read_hold_nobody_up(program: Program, suite: Path) -> None:
    with serving(program, suite, "--no-worker") as service, ExitStack() as kept:
        number = service.send(wait=0)["id"]
        for _ in range(EACH):
            for more in ("/events", "?wait=300"):
                kept.enter_context(silent(service, f"/v1/evaluations/{number}{more}"))
        assert service.ask("GET", "/v1/queue").json()["states"]["queued"] == 1
        other = service.send(wait=0)["id"]

        def state(evaluation: int) -> str:
            return str(service.ask("GET", f"/v1/evaluations/{evaluation}").json()["state"])

        worker = program.start("service", "workers")
        try:
            refused = service.ask("GET", f"/v1/evaluations/{other}", params={"wait": 60})
            assert refused.status_code == 429  # they are one caller, and it has as many polls as it may
            until(lambda: state(other) == "done" == state(number))
        finally:
            kill(worker)
        assert service.ask("GET", "/health").status_code == 200
        assert service.send(wait=0)["state"] == "queued"
