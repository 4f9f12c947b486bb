"""The routes of the service, as a caller uses them."""

from __future__ import annotations

import json
import socket
import threading
from contextlib import suppress
from pathlib import Path
from typing import Any

import httpx2
import pytest

from kernelproof.types import Status
from tests.cli import material
from tests.cli.program import Program
from tests.service.conftest import NO_PROGRAM, Running, serving


def error(answer: httpx2.Response, status: int) -> str:
    """The message of a refusal."""
    assert answer.status_code == status, answer.text
    return str(answer.json()["error"]["message"])


def test_a_candidate_becomes_a_stored_verdict(service: Running) -> None:
    found = service.send(source=material.wrong(), label="a trainer")
    result = found["result"]
    assert found["state"] == "done" and found["queue_seconds"] >= 0 and not found["infrastructure"]
    assert (result["status"], result["stage"], result["score"]) == ("wrong_output", "correctness", 0.0)
    assert result["counts"] and "What was seen" in result["feedback"] and result["device_seconds"] > 0
    attempt = service.program.attempts()[-1]
    assert (attempt.id, attempt.status, attempt.run.name) == (
        result["attempt"],
        Status.WRONG_OUTPUT,
        "a trainer",
    )


def test_a_batch_is_taken_whole_or_not_at_all(service: Running) -> None:
    one = {"problem": "relu", "source": NO_PROGRAM}
    before = service.ask("GET", "/v1/queue").json()["states"]
    bad = {"evaluations": [one, {**one, "problem": "realu"}, {**one, "settings": {"rigor": "fast"}}]}
    said = error(service.ask("POST", "/v1/evaluations", json=bad), 422)
    assert "evaluations[1]: no problem 'realu'" in said and "evaluations[2]: settings: rigor must be" in said
    assert service.ask("GET", "/v1/queue").json()["states"] == before
    good = service.ask(
        "POST", "/v1/evaluations", params={"wait": 60}, json={"evaluations": [one] * 20}
    ).json()
    assert [each["result"]["status"] for each in good["evaluations"]] == ["no_code"] * 20
    assert len({each["id"] for each in good["evaluations"]}) == 20


def test_an_idempotency_key_gets_the_same_evaluation(service: Running) -> None:
    first = service.send(idempotency_key="k")
    assert service.send(idempotency_key="k")["id"] == first["id"]
    header = {"json": {"problem": "relu", "source": NO_PROGRAM}, "headers": {"Idempotency-Key": "k"}}
    assert service.ask("POST", "/v1/evaluations", **header).json()["id"] == first["id"]
    long = {**header, "headers": {"Idempotency-Key": "k" * 201}}
    assert "idempotency_key" in error(service.ask("POST", "/v1/evaluations", **long), 422)
    other = {"problem": "relu", "source": "something else", "idempotency_key": "k"}
    assert "another request before" in error(service.ask("POST", "/v1/evaluations", json=other), 409)


def test_equal_work_is_answered_from_what_is_stored_where_the_caller_allows_it(service: Running) -> None:
    first = service.send(source="equal work")
    again = service.send(source="equal work", reuse=True)
    assert again["reused"] and again["result"]["attempt"] == first["result"]["attempt"]
    assert again["id"] != first["id"]
    anew = service.send(source="equal work")
    assert not anew["reused"] and anew["result"]["attempt"] != first["result"]["attempt"]
    changed = service.send(source="equal work", reuse=True, settings={"trials": 2})
    assert not changed["reused"]


def test_a_problem_of_the_callers(service: Running) -> None:
    reference = material.RELU
    found = service.send(problem=None, reference=reference, source=NO_PROGRAM)
    assert found["result"]["status"] == "no_code" and found["problem"].startswith("sent_")
    said = error(
        service.ask("POST", "/v1/evaluations", json={"reference": "class Model: pass", "source": "x"}), 422
    )
    assert "defines no `def get_inputs()`" in said


def test_its_states_are_told_as_events(service: Running) -> None:
    number = service.send(wait=0)["id"]
    with httpx2.stream("GET", f"{service.url}/v1/evaluations/{number}/events", timeout=60) as stream:
        assert stream.headers["content-type"].startswith("text/event-stream")
        lines = list(stream.iter_lines())
    events = [line.removeprefix("event: ") for line in lines if line.startswith("event")]
    assert events[-1] == "done" and set(events) <= {"queued", "running", "done"}
    assert json.loads(lines[-2].removeprefix("data: "))["result"]["status"] == "no_code"


def test_operators_see_queue_workers_and_metrics(service: Running) -> None:
    service.send()
    assert service.ask("GET", "/health").json()["status"] == "ok"
    queue = service.ask("GET", "/v1/queue").json()
    assert queue["states"]["done"] > 0 and queue["states"]["queued"] == 0
    [worker] = service.ask("GET", "/v1/workers").json()["workers"]
    assert worker["alive"] and "cpp" in worker["backend"].split(",")
    metrics = service.ask("GET", "/metrics").text
    assert f'kernelproof_evaluations{{state="done"}} {queue["states"]["done"]:.1f}' in metrics


BAD: list[tuple[Any, int, str]] = [
    (b"", 400, "not JSON"),
    (b'{"problem"', 400, "not JSON"),
    (b"\xff\xfe{}", 400, "not JSON"),
    (b'{"a":' * 100_000, 400, "not JSON"),
    (b"[]", 422, "the body must be"),
    ({}, 422, "source"),
    ({"source": "x"}, 422, "give either problem"),
    ({"source": "x", "problem": "relu", "reference": "y"}, 422, "give either problem"),
    ({"source": "x", "problem": "relu", "unknown": 1}, 422, "unknown"),
    ({"source": "x", "problem": "relu", "priority": 1e9}, 422, "priority"),
    ({"source": "x", "problem": "relu", "deadline_s": -1}, 422, "deadline_s"),
    (b'{"source": "x", "problem": "relu", "deadline_s": NaN}', 422, "deadline_s"),
    ({"source": "x", "problem": "relu", "settings": {"unsafe": True}}, 422, "settings: no unsafe"),
    ({"source": "x", "problem": "relu", "settings": {"memory_bytes": 1}}, 422, "no memory_bytes"),
    ({"source": "x", "problem": "relu", "settings": {"trials": 10**6}}, 422, "settings: trials"),
    ({"source": "x", "problem": "relu", "settings": {"backend": "metal"}}, 422, "settings: backend"),
    ({"source": "x", "problem": "../../etc/passwd"}, 422, "no problem"),
    ({"source": "x" * 1_000_001, "problem": "relu"}, 422, "source"),
    ({"evaluations": []}, 422, "evaluations"),
    ({"evaluations": [{"source": "x", "problem": "relu"}] * 1025}, 422, "evaluations"),
]


@pytest.mark.few(10)
@pytest.mark.parametrize(("body", "status", "says"), BAD, ids=range(len(BAD)))
def test_a_bad_request_is_told_and_stores_nothing(
    service: Running, body: Any, status: int, says: str
) -> None:
    before = service.ask("GET", "/v1/queue").json()["states"]
    sent = {"content": body} if isinstance(body, bytes) else {"json": body}
    assert says in error(service.ask("POST", "/v1/evaluations", **sent), status)
    assert service.ask("GET", "/v1/queue").json()["states"] == before


@pytest.mark.parametrize(
    ("path", "says"),
    [
        ("/v1/evaluations/nothing", "there is no evaluation"),
        ("/v1/evaluations/%00%ff/events", "there is no evaluation"),
        ("/results/nothing", "there is no task"),
        ("/nothing", "Not Found"),
    ],
)
def test_what_is_not_there(service: Running, path: str, says: str) -> None:
    assert says in error(service.ask("GET", path), 404)


def test_a_foreign_name_is_refused(service: Running) -> None:
    assert service.ask("GET", "/health", headers={"Host": "evil.example"}).status_code == 400
    for ours in ("localhost", "[::1]:8400", "127.0.0.1:1"):
        assert service.ask("GET", "/health", headers={"Host": ours}).status_code == 200


def test_a_caller_that_never_reads_holds_nobody_up(service: Running) -> None:
    host, port = service.url.removeprefix("http://").split(":")
    request = b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n" * 2000
    with socket.create_connection((host, int(port))) as silent:
        threading.Thread(target=_sent, args=(silent, request), daemon=True).start()
        assert service.send()["state"] == "done"


def _sent(connection: socket.socket, request: bytes) -> None:
    with suppress(OSError):
        connection.sendall(request)


def test_it_is_not_open_to_others_without_tokens(program: Program, suite: Path) -> None:
    said = program.run("service", "api", "--host", "0.0.0.0", "--port", 0, "--suite", suite, code=2).stderr
    assert "callers add NAME" in said
    taken = socket.create_server(("127.0.0.1", 0))
    with taken:
        port = taken.getsockname()[1]
        said = program.run("service", "api", "--port", port, "--suite", suite, code=3).stderr
    assert f"port {port} is in use" in said and "--port" in said


def test_callers_see_their_own_within_their_quota(program: Program, suite: Path) -> None:
    first, second = (
        program.run("service", "callers", "add", name, *more).stdout.strip() for name, more in CALLERS
    )
    assert "has a token" in program.run("service", "callers", "add", "one", code=2).stderr
    with serving(program, suite, "--no-worker", "--max-queue", 4) as service:

        def send(token: str, count: int = 1) -> httpx2.Response:
            body = {"evaluations": [{"problem": "relu", "source": NO_PROGRAM}] * count}
            return service.ask("POST", "/v1/evaluations", json=body, headers=bearer(token))

        assert "Authorization: Bearer" in error(send("wrong"), 401)
        assert service.ask("GET", "/v1/queue").status_code == 401
        number = send(first).json()["evaluations"][0]["id"]
        assert service.ask("GET", f"/v1/evaluations/{number}", headers=bearer(second)).status_code == 404
        assert service.ask("DELETE", f"/v1/evaluations/{number}", headers=bearer(second)).status_code == 404
        assert service.ask("GET", f"/v1/evaluations/{number}", headers=bearer(first)).status_code == 200
        assert "quota has 1 of 2" in error(send(first, 2), 429)
        full = send(second, 4)
        assert "the queue has 1 of 4" in error(full, 429) and int(full.headers["retry-after"]) > 0
        program.run("service", "callers", "revoke", "one")
        assert send(first).status_code == 401
        assert first not in (program.workspace / "db" / "attempts.sqlite").read_bytes().decode("latin-1")


CALLERS: list[tuple[str, tuple[object, ...]]] = [("one", ("--quota", 2)), ("two", ())]


def bearer(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"}


@pytest.mark.ci
def test_what_waits_is_cancelled_and_what_is_late_expires(program: Program, suite: Path) -> None:
    with serving(program, suite, "--no-worker") as service:
        number = service.send(wait=0)["id"]
        assert service.ask("GET", "/health").json()["status"] == "no worker"
        assert service.ask("DELETE", f"/v1/evaluations/{number}").json()["state"] == "cancelled"
        late = service.send(wait=0, deadline_s=0.01)["id"]
        kept = service.send(wait=0)["id"]
        worker = program.start("service", "workers")
        try:
            ended = service.ask("GET", f"/v1/evaluations/{kept}", params={"wait": 60}).json()
            assert ended["state"] == "done"
            said = service.ask("GET", f"/v1/evaluations/{late}").json()
            assert said["state"] == "expired" and "its deadline passed" in said["error"]
        finally:
            worker.terminate()
            out, errors = worker.communicate(timeout=60)
        assert worker.returncode == 0 and "worker for" in out and "Traceback" not in errors
        [row] = service.ask("GET", "/v1/workers").json()["workers"]
        assert row["ended"] is not None and not row["alive"]


WAITING = 60
LONG_S = 604_800
"""The longest deadline that a caller may set."""


def sent_batch(service: Running, *items: dict[str, Any]) -> Any:
    body = {"evaluations": [{"problem": "relu", "source": NO_PROGRAM, **item} for item in items]}
    return service.ask("POST", "/v1/evaluations", json=body)


def sent_one(service: Running, **item: Any) -> Any:
    return service.ask("POST", "/v1/evaluations", json={"problem": "relu", "source": NO_PROGRAM, **item})


def count_queued(service: Running) -> int:
    return int(service.ask("GET", "/v1/queue").json()["states"]["queued"])


def rate(service: Running) -> float:
    return float(service.ask("GET", "/v1/queue").json()["per_second"])


@pytest.mark.ci
def test_a_deadline_is_accepted_or_refused_by_what_waits_before_it(program: Program, suite: Path) -> None:
    with serving(program, suite, "--no-worker") as service:
        assert sent_batch(service, *[{}] * 3, {"deadline_s": 3600}).status_code == 202, "no rate is known yet"
        worker = program.start("service", "workers")
        try:
            service.send(source="equal work", idempotency_key="sent before")
        finally:
            worker.terminate()
            worker.communicate(timeout=60)
        sent_batch(service, *[{}] * WAITING)
        short = WAITING / rate(service) / 10
        refused(service, short)
        accepted(service, short)


def refused(service: Running, short: float) -> None:
    before = count_queued(service)
    said = error(sent_one(service, deadline_s=short), 409)
    assert f"the deadline of {short:g} s cannot be met: about " in said and "s of work are waiting" in said
    assert sent_one(service, deadline_s=short).json()["error"]["code"] == "deadline_cannot_be_met"
    assert "cannot be met" in error(sent_one(service, deadline_s=short, priority=-1), 409)
    assert "cannot be met" in error(sent_batch(service, {}, {"deadline_s": short}), 409)
    assert count_queued(service) == before, "something of a refused request was stored"


def accepted(service: Running, short: float) -> None:
    assert sent_one(service, deadline_s=LONG_S).status_code == 202
    assert sent_one(service, deadline_s=short, priority=1).status_code == 202, "nothing waits before it"
    key = {"source": "equal work", "idempotency_key": "sent before"}
    assert sent_one(service, **key, deadline_s=short).json()["state"] == "done", "it was sent before"
    again = sent_one(service, source="equal work", reuse=True, deadline_s=short).json()
    assert again["state"] == "done" and again["reused"], "it needs no worker"
