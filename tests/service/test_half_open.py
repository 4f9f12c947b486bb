"""Connections that never ask, ask half, wait in great number, or are open when the service is told to end."""

from __future__ import annotations

import re
import resource
import signal
import socket
import statistics
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from http.client import HTTPConnection
from pathlib import Path

import pytest

from kernelproof import http_server
from kernelproof.client import Client
from kernelproof.service import middleware
from tests.cli import prestarted
from tests.cli.program import Program
from tests.report.web.serving.server import serving as serving_results
from tests.service.conftest import Running, serving

HALVES = 1_100
HALF = (b"", b"GET /v1/queue HTTP/1.1\r\nHost: localhost\r\nX: ", b"POST /v1/evaluations HTTP/1.1\r\n")
STRANGER = b"POST /v1/evaluations HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000000\r\n\r\n"
"""No token, and a body that never comes to its end."""


@pytest.fixture
def files() -> Iterator[None]:
    """This process may open files for all the connections."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard < 4096:
        pytest.skip("this system allows fewer than 4,096 open files")
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, 4096), hard))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def limit_files(monkeypatch: pytest.MonkeyPatch, soft: int, hard: int) -> None:
    """Programs that are started from now on may have so many open files, and may raise that to `hard`."""
    interruptible = prestarted.interruptible

    def limited() -> None:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        interruptible()

    monkeypatch.setattr(prestarted, "interruptible", limited)


def connected(port: int, sent: bytes) -> socket.socket:
    connection = socket.create_connection(("127.0.0.1", port), timeout=30)
    connection.sendall(sent)
    return connection


def port_of(service: Running) -> int:
    return int(service.url.rpartition(":")[2])


def half_open(port: int, count: int, kept: ExitStack) -> list[socket.socket]:
    kinds = [*HALF, STRANGER]
    return [kept.enter_context(connected(port, kinds[number % len(kinds)])) for number in range(count)]


def token(program: Program, name: str) -> str:
    return program.run("service", "callers", "add", name).stdout.strip()


def closed(connection: socket.socket) -> bool:
    """Whether the other side has ended it; what it sent before is read."""
    connection.settimeout(0.01)
    try:
        while connection.recv(65_536):
            pass
    except TimeoutError:
        return False
    except ConnectionError:
        return True
    return True


def seconds(ask: Callable[[], object], times: int = 25) -> list[float]:
    found = []
    for _ in range(times):
        began = time.monotonic()
        ask()
        found.append(time.monotonic() - began)
    return found


def asked(connection: HTTPConnection, headers: dict[str, str]) -> None:
    connection.request("GET", "/v1/queue", headers=headers)
    assert connection.getresponse().read()


@pytest.mark.ci
@pytest.mark.clock
def test_a_caller_is_answered_beside_half_open_connections_and_polls(
    program: Program, suite: Path, files: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the 1,024 open files that systems usually allow at first."""
    polls = HALVES // middleware.POLLS + 1
    first = token(program, "first")
    with program.store() as store:
        tokens = [first, *(store.service.callers.add(f"caller{number}") for number in range(1, polls))]
    limit_files(monkeypatch, 1024, resource.getrlimit(resource.RLIMIT_NOFILE)[1])
    with serving(program, suite, "--no-worker") as service, ExitStack() as kept:
        port = port_of(service)
        mine = {"Authorization": f"Bearer {tokens[0]}"}
        ids = []
        for each in tokens:
            sent = {"problem": "relu", "source": "no code"}
            headers = {"Authorization": f"Bearer {each}"}
            ids.append(service.ask("POST", "/v1/evaluations", json=sent, headers=headers).json()["id"])
        for number in range(HALVES):
            who = number % polls
            ask = f"GET /v1/evaluations/{ids[who]}?wait=300 HTTP/1.1\r\nHost: localhost\r\n"
            head = f"{ask}Authorization: Bearer {tokens[who]}\r\n\r\n".encode()
            kept.enter_context(connected(port, head))
        until(lambda: waiting(service, mine) == HALVES)
        half_open(port, HALVES, kept)
        fresh = seconds(lambda: asked(HTTPConnection("127.0.0.1", port, timeout=30), mine))
        with closing(HTTPConnection("127.0.0.1", port, timeout=30)) as connection:
            kept_alive = seconds(lambda: asked(connection, mine))
        for name, found in (("new", fresh), ("kept", kept_alive)):
            print(
                f"{name} connection: first {found[0]:.3f} s, median {statistics.median(found):.3f} s, "
                f"slowest of the others {max(found[1:]):.3f} s"
            )
        assert waiting(service, mine) == HALVES
        assert statistics.median(fresh) < 0.2 and statistics.median(kept_alive) < 0.2


def waiting(service: Running, headers: dict[str, str]) -> int:
    """Requests that wait for an end, as the service counts them."""
    said = service.ask("GET", "/metrics", headers=headers).text
    return int(float(re.findall(r"^kernelproof_requests_waiting (\S+)$", said, re.MULTILINE)[0]))


def until(true: Callable[[], bool]) -> None:
    last = time.monotonic() + 60
    while not true():
        assert time.monotonic() < last
        time.sleep(0.2)


@pytest.mark.ci
def test_half_open_connections_are_closed_and_few_files_are_enough(
    program: Program, suite: Path, files: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With 256 open files, the oldest of them make room for others, and the log has a few lines."""

    limit_files(monkeypatch, 256, 256)
    mine = {"Authorization": f"Bearer {token(program, 'caller')}"}
    with serving(program, suite, "--no-worker") as service, ExitStack() as kept:
        port = port_of(service)
        open_ = half_open(port, HALVES, kept)
        for _ in range(20):
            assert service.ask("GET", "/v1/queue", headers=mine).status_code == 200
        newest = open_[-4:]
        time.sleep(http_server.HEAD_S + 2)
        assert [closed(each) for each in newest[:3]] == [True] * 3
        for _ in range(50):
            with connected(port, b"no HTTP at all\r\n\r\n") as other:
                assert b"400" in other.recv(4096)
        service.process.terminate()
        _, said = service.process.communicate(timeout=30)
        assert len(said) < 2_000, said[:4_000]


@pytest.mark.parametrize("length", ["known", "chunked"])
def test_a_body_that_is_too_large_is_refused_readably(service: Running, length: str) -> None:
    """Its sender reads nothing before all of it is sent, as most clients do."""
    size = middleware.BODY_BYTES + (8 << 20)
    head = "POST /v1/evaluations HTTP/1.1\r\nHost: localhost\r\n"
    with connected(port_of(service), head.encode()) as connection:
        if length == "known":
            connection.sendall(f"Content-Length: {size}\r\n\r\n".encode())
        else:
            connection.sendall(b"Transfer-Encoding: chunked\r\n\r\n")
        for _ in range(size >> 20):
            piece = b" " * (1 << 20)
            connection.sendall(piece if length == "known" else b"100000\r\n" + piece + b"\r\n")
        if length == "chunked":
            connection.sendall(b"0\r\n\r\n")
        answer = connection.recv(65_536)
        assert answer.startswith(b"HTTP/1.1 413")
        while b"64 MiB at most" not in answer:  # head and body may come apart
            more = connection.recv(65_536)
            assert more, answer
            answer += more
        connection.sendall(b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert connection.recv(65_536).startswith(b"HTTP/1.1 200"), "the connection is as good as before"


def test_a_caller_has_so_many_polls_and_they_end_with_their_connections(
    program: Program, suite: Path
) -> None:
    with serving(program, suite, "--no-worker") as service:
        number = service.send(wait=0)["id"]
        path = f"/v1/evaluations/{number}?wait=300"
        poll = f"GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode()
        with ExitStack() as kept:
            for _ in range(middleware.POLLS):
                kept.enter_context(connected(port_of(service), poll))
            until(lambda: waiting(service, {}) == middleware.POLLS)
            refused = [
                service.ask("GET", path),
                service.ask("GET", f"/v1/evaluations/{number}/events"),
                service.ask("POST", "/v1/evaluations?wait=1", json={"problem": "relu", "source": "x"}),
            ]
            for answer in refused:
                assert answer.status_code == 429 and answer.headers["retry-after"] == "1"
                assert answer.json()["error"]["code"] == "too_many_requests"
            assert service.ask("GET", f"/v1/evaluations/{number}").json()["state"] == "queued"
            with Client(service.url) as client, ThreadPoolExecutor(1) as threads:
                ended = threads.submit(client.wait, number)
                time.sleep(0.5)
                service.ask("DELETE", f"/v1/evaluations/{number}")
                assert ended.result(20).state == "cancelled"
        until(lambda: waiting(service, {}) == 0)


@pytest.mark.few(1)
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=["SIGINT", "SIGTERM"])
def test_callers_that_wait_are_answered_and_it_ends_in_order(
    program: Program, suite: Path, number: signal.Signals
) -> None:
    with serving(program, suite, "--no-worker") as service, ExitStack() as kept:
        path = f"GET /v1/evaluations/{service.send(wait=0)['id']}"
        ask = [f"{path}{more} HTTP/1.1\r\nHost: localhost\r\n\r\n" for more in ("?wait=300", "/events")]
        polls = [kept.enter_context(connected(port_of(service), each.encode())) for each in ask * 10]
        until(lambda: waiting(service, {}) == len(polls))
        service.process.send_signal(number)
        answers = [_rest(poll) for poll in polls]
        out, errors = service.process.communicate(timeout=60)
        assert errors == "" and service.process.returncode == 0, out + errors
    assert all(answer.startswith("HTTP/1.1 200") and '"state"' in answer for answer in answers), answers[0]


def _rest(connection: socket.socket) -> str:
    """All that comes until the connection is closed."""
    return b"".join(iter(lambda: connection.recv(65_536), b"")).decode()


def test_told_to_end_as_soon_as_it_serves_it_ends(program: Program, suite: Path) -> None:
    with serving(program, suite, "--no-worker") as service:
        service.process.send_signal(signal.SIGTERM)
        out, errors = service.process.communicate(timeout=60)
        assert errors == "" and service.process.returncode == 0, out + errors


@pytest.mark.ci
@pytest.mark.clock
def test_pages_are_answered_beside_half_open_connections(one_attempt: Path, files: None) -> None:
    with serving_results(one_attempt) as server, ExitStack() as kept:
        half_open(server.port, HALVES, kept)
        found = seconds(lambda: server.page(), 10)
        assert statistics.median(found) < 1.0
        assert server.stop() == (0, "")
