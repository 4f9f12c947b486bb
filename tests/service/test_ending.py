"""A service that is told to end while callers wait."""

from __future__ import annotations

import signal
import socket
import time
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.cli.program import Program
from tests.service.conftest import Running, serving
from tests.service.test_silent_callers import silent

PATHS = ("/v1/evaluations/{}?wait=300", "/v1/evaluations/{}/events")


@pytest.mark.few(1)
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=["SIGINT", "SIGTERM"])
def test_callers_that_wait_are_answered_and_it_ends_in_order(
    program: Program, suite: Path, number: signal.Signals
) -> None:
    with serving(program, suite, "--no-worker") as service, ExitStack() as kept:
        sent = service.send(wait=0)["id"]
        waiting = [kept.enter_context(silent(service, path.format(sent))) for path in PATHS * 10]
        _until_they_wait(service, len(waiting))
        service.process.send_signal(number)
        answers = [_rest(each) for each in waiting]
        out, errors = service.process.communicate(timeout=60)
        assert errors == "" and service.process.returncode == 0, out + errors
    assert all(answer.startswith("HTTP/1.1 200") and '"state"' in answer for answer in answers), answers[0]


def _until_they_wait(service: Running, count: int) -> None:
    ends = time.monotonic() + 60
    while f"\nkernelproof_requests_waiting {float(count)}" not in service.ask("GET", "/metrics").text:
        assert time.monotonic() < ends


def _rest(connection: socket.socket) -> str:
    """All that comes until the connection is closed."""
    connection.settimeout(60)
    return b"".join(iter(lambda: connection.recv(65_536), b"")).decode()


def test_told_to_end_as_soon_as_it_serves_it_ends(program: Program, suite: Path) -> None:
    with serving(program, suite, "--no-worker") as service:
        service.process.send_signal(signal.SIGTERM)
        out, errors = service.process.communicate(timeout=60)
        assert errors == "" and service.process.returncode == 0, out + errors
