"""Our client behind a server that loses requests and answers: what is sent again has its effect once."""

from __future__ import annotations

import socket
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import httpx2
import pytest

from kernelproof.client import Candidate, Client
from kernelproof.errors import MachineError
from tests import loopback
from tests.cli.program import Program
from tests.service.conftest import NO_PROGRAM, Running, serving

LOST, HALF, CUT = "lost", "half", "cut"
"""The service answers, and nothing or half of that arrives; the connection is cut before the answer."""


@dataclass(frozen=True)
class Refusal:
    """An answer that is not the service's."""

    status: int
    headers: dict[str, str] = field(default_factory=dict)


@dataclass
class Way:
    """The way to the service, and what went over it."""

    url: str
    requests: list[tuple[str, bytes, float]] = field(default_factory=list)
    """Method, body and time of each request."""

    third: Callable[[], object] = lambda: None
    """Called when the third request has come."""

    @property
    def sent(self) -> list[bytes]:
        """The bodies of submissions."""
        return [body for method, body, _ in self.requests if method == "POST"]


@contextmanager
def faulty(service: Running, *faults: str | Refusal, port: int = 0) -> Iterator[Way]:
    """A server in front of the service; each of the first requests meets one of the faults."""
    left, way = list(faults), Way("")

    class Handler(loopback.Quiet):
        def do_GET(self) -> None:
            body = self.rfile.read(int(self.headers.get("content-length", 0)))
            way.requests.append((self.command, body, time.monotonic()))
            if len(way.requests) == 3:
                way.third()
            fault = left.pop(0) if left else None
            if isinstance(fault, Refusal):
                self._answer(fault.status, b'{"error": {"message": "not now"}}', **fault.headers)
            elif fault == CUT:
                with pytest.raises(httpx2.TimeoutException):
                    self._forwarded(body, patience=0.05)
            else:
                found = self._forwarded(body, patience=60)
                if fault != LOST:
                    part = len(found.content) // 2 if fault == HALF else None
                    self._answer(found.status_code, found.content, part)

        do_POST = do_GET

        def _forwarded(self, body: bytes, patience: float) -> httpx2.Response:
            url = service.url + self.path
            return httpx2.request(self.command, url, content=body, timeout=patience)

        def _answer(self, status: int, body: bytes, part: int | None = None, **headers: str) -> None:
            self.send_response(status)
            for name, value in {"Content-Length": str(len(body)), **headers}.items():
                self.send_header(name.replace("_", "-"), value)
            self.end_headers()
            self.wfile.write(body[:part])

    with loopback.serving(Handler, port) as url:
        way.url = url
        yield way


def count(service: Running) -> int:
    """The evaluations that the service ever got."""
    return sum(service.ask("GET", "/v1/queue").json()["states"].values())


@pytest.mark.few(1)
@pytest.mark.parametrize(
    "faults",
    [(LOST, HALF), (Refusal(502), Refusal(504)), (Refusal(503), LOST)],
    ids=["answers lost", "gateway", "away, then lost"],
)
def test_a_submission_whose_answer_is_lost_is_sent_again_and_has_one_effect(
    service: Running, faults: tuple[str | Refusal, ...]
) -> None:
    before = count(service)
    with faulty(service, *faults) as way, Client(way.url) as client:
        assert client.evaluate(Candidate(NO_PROGRAM, "relu")).status == "no_code"
    assert len(way.sent) == len(faults) + 1 and len(set(way.sent)) == 1, "not the same request"
    assert count(service) == before + 1


def test_a_service_that_is_away_for_a_while_is_asked_again(service: Running) -> None:
    with socket.socket() as reserved, ThreadPoolExecutor(1) as threads:
        reserved.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        reserved.bind(("127.0.0.1", 0))  # connections are refused, and nobody else gets the port
        port = reserved.getsockname()[1]
        with Client(f"http://127.0.0.1:{port}", patience_s=60) as client:
            found = threads.submit(client.evaluate, Candidate(NO_PROGRAM, "relu"))
            time.sleep(0.5)
            with faulty(service, port=port) as way:
                assert found.result(60).status == "no_code" and len(way.sent) == 1


@pytest.mark.ci
def test_a_result_is_waited_for_again_when_the_network_is_cut_in_the_middle(
    program: Program, suite: Path
) -> None:
    with serving(program, suite, "--no-worker") as service, Client(service.url) as direct:
        [sent] = direct.submit([Candidate(NO_PROGRAM, "relu")])
        with faulty(service, CUT, CUT) as way, Client(way.url) as client:
            way.third = lambda: direct.cancel(sent.id)
            assert client.wait(sent.id).state == "cancelled"
        assert len(way.requests) == 3 and not way.sent and count(service) == 1


def test_the_service_says_when_to_come_again(service: Running) -> None:
    full = Refusal(429, {"Retry_After_Ms": "600"})
    with faulty(service, full) as way, Client(way.url) as client:
        assert client.evaluate(Candidate(NO_PROGRAM, "relu")).status == "no_code"
    first, second = (at for method, _, at in way.requests if method == "POST")
    assert second - first >= 0.6
    late = Refusal(503, {"Retry_After": "100"})
    with (
        faulty(service, late) as way,
        Client(way.url, patience_s=5) as client,
        pytest.raises(MachineError, match="answers 503: not now"),
    ):
        client.evaluate(Candidate(NO_PROGRAM, "relu"))
    assert len(way.requests) == 1


def test_a_batch_that_the_queue_has_no_place_for_is_sent_in_parts(service: Running) -> None:
    before, sources = count(service), [NO_PROGRAM, "def f(:", NO_PROGRAM, "def g(:"]
    with faulty(service, Refusal(429), LOST) as way, Client(way.url) as client:
        found = client.evaluate_many([Candidate(source, "relu") for source in sources])
    assert [each.status for each in found] == ["no_code", "syntax_error"] * 2
    assert len(way.sent) == 4, "whole, the first half twice, the second half"
    assert count(service) == before + len(sources)


def test_a_failure_of_the_service_itself_is_not_asked_for_again(service: Running) -> None:
    with (
        faulty(service, Refusal(500)) as way,
        Client(way.url) as client,
        pytest.raises(MachineError, match="answers 500: not now"),
    ):
        client.evaluate(Candidate(NO_PROGRAM, "relu"))
    assert len(way.requests) == 1
