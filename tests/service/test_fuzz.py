"""Requests that nobody means well: generated from the service's own description, and hostile ones by hand.

No request may get a 500, and every answer has to be as the description says.
"""

from __future__ import annotations

import json
import socket
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import httpx2
import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from schemathesis import GenerationMode
from schemathesis.checks import CHECKS, load_all_checks

from kernelproof.db.evaluations import OPEN
from kernelproof.db.store import Store, open_store
from tests.cli import material
from tests.service.fuzzing import serving_here

load_all_checks()
CONFORMS = CHECKS.get_by_names(
    [
        *("not_a_server_error", "status_code_conformance", "content_type_conformance"),
        *("response_headers_conformance", "response_schema_conformance"),
    ]
)
BOTH = ("sqlite", "postgresql")
JSON = {"Content-Type": "application/json"}
EVALUATIONS = "/v1/evaluations"


@pytest.fixture(scope="module")
def store(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    """A database of the kind that the test names."""
    if request.param == "postgresql":
        postgres = request.getfixturevalue("postgres")
        name = postgres.made()
        with open_store(postgres.address(name), create=False) as opened:
            yield opened
        postgres.sql(f"DROP DATABASE {name} WITH (FORCE)")
        return
    with open_store(tmp_path_factory.mktemp("fuzzed") / "attempts.sqlite") as opened:
        yield opened


@pytest.fixture(scope="module")
def url(store: Store, suite: Path) -> Iterator[str]:
    """A service that is open to all, and one evaluation in it that has ended."""
    with serving_here(store, suite) as url:
        known = {"task_id": "known", "problem": "relu", "kernel_code": "known"}
        assert httpx2.post(url + "/evaluate", json=known, timeout=60).status_code == 200
        yield url


def fuzz(url: str, examples: int) -> int:
    """Generates requests for every route; how many were sent."""
    sent = 0
    number = httpx2.post(url + EVALUATIONS, json={"problem": "relu", "source": "known"}).json()["id"]
    known = {"number": number, "task_id": "known"}
    for found in schemathesis.openapi.from_url(url + "/openapi.json").get_all_operations():
        operation = found.ok()
        modes = [GenerationMode.POSITIVE]
        if operation.body or operation.query:
            modes.append(GenerationMode.NEGATIVE)
        for mode in modes:

            @given(operation.as_strategy(generation_mode=mode), st.booleans())
            @settings(
                max_examples=examples,
                deadline=None,
                database=None,
                derandomize=True,
                phases=[Phase.generate],
                suppress_health_check=list(HealthCheck),
            )
            def one(case: Any, is_known: bool) -> None:
                nonlocal sent
                sent += 1
                if is_known:
                    _name_known(case, known)
                case.validate_response(case.call(timeout=60), checks=CONFORMS)

            one()
    return sent


def _name_known(case: Any, known: dict[str, str]) -> None:
    """Has a request name what there is, so that it comes further."""
    for name in set(known) & set(case.path_parameters or {}):
        case.path_parameters[name] = known[name]
    if isinstance(case.body, dict):
        for each in (case.body, case.body.get("payload"), case.body.get("verifier_metadata")):
            if isinstance(each, dict) and ("problem" in each or "source" in each or each is not case.body):
                each["problem"] = "relu"
                each.pop("reference", None)


@pytest.mark.parametrize("store", ["sqlite"], indirect=True)
@pytest.mark.parametrize("examples", [1, pytest.param(2, marks=pytest.mark.ci)])
def test_generated_requests(url: str, examples: int) -> None:
    assert fuzz(url, examples) > 20 * examples


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("store", BOTH, indirect=True)
def test_many_generated_requests(url: str) -> None:
    assert fuzz(url, examples=100) > 2000


NUMBERS = ("NaN", "-Infinity", "1e400", "1e-320", "9" * 30, "9" * 5000, "-9223372036854775809", "true")
TEXTS = (r"a\u0000b", r"\ud800", r"\udfff\ud800", r"\u2028", "", "x" * 300, "'; DROP TABLE runs; --")
SETTINGS = ("trials", "measure_seconds", "target_half_width", "size", "backend", "rigor", "baselines")
DEPTHS = (150, 190, 210, 100_000)


def one(more: str) -> str:
    return '{"problem": "relu", "source": "x"' + more + "}"


def rollout(text: str = "x", more: str = "") -> str:
    content = '[{"type": "output_text", "text": "' + text + '"}]'
    response = '{"output": [{"type": "message", "content": ' + content + "}]" + more + "}"
    return (
        '{"responses_create_params": {}, "response": '
        + response
        + ', "verifier_metadata": {"problem": "relu"}'
        + more
        + "}"
    )


def texts() -> Iterator[tuple[str, str]]:
    """Routes, and hostile texts that are sent there."""
    for text in TEXTS:
        for name in ("label", "idempotency_key", "source", "problem"):
            yield EVALUATIONS, one(f', "{name}": "{text}"')
        yield EVALUATIONS, one(f', "settings": {{"{text}": 1}}')
        yield EVALUATIONS, one(f', "settings": {{"size": "{text}", "backend": "{text}"}}')
        yield EVALUATIONS, f'{{"source": "x", "reference": "class Model: pass {text}"}}'
        reference = json.dumps(material.RELU)[:-1] + f'# {text}"'
        yield EVALUATIONS, f'{{"source": "x", "reference": {reference}}}'
        yield "/evaluate", f'{{"task_id": "{text}", "reference_code": {reference}, "kernel_code": "{text}"}}'
        yield "/verify", rollout(text, f', "{text}": "{text}"')
        yield "/get_reward", f'{{"query": ["{text}"], "prompts": ["{text}"], "labels": ["relu"]}}'
        yield "/get_reward", f'{{"query": ["x"], "prompts": ["x"], "labels": ["{text}"]}}'


def numbers() -> Iterator[tuple[str, str]]:
    """Routes, and hostile numbers that are sent there."""
    for number in NUMBERS:
        for name in ("priority", "deadline_s", "reuse", "label", "source"):
            yield EVALUATIONS, one(f', "{name}": {number}')
        for name in SETTINGS:
            yield EVALUATIONS, one(f', "settings": {{"{name}": {number}}}')
        yield "/evaluate", f'{{"task_id": "t", "problem": "relu", "kernel_code": "y", "timeout": {number}}}'
        yield "/workflow/submit", f'{{"payload": {{"task_id": "w", "kernel_code": {number}}}}}'
        yield "/verify", rollout(more=f', "_ng_task_index": {number}')
        yield "/aggregate_metrics", f'{{"verify_responses": [{{"reward": {number}, "_ng_task_index": 1}}]}}'
        yield "/aggregate_metrics", f'{{"verify_responses": [{{"reward": 1, "_ng_task_index": {number}}}]}}'


def shapes() -> Iterator[tuple[str, str | bytes]]:
    """Routes, and bodies that are deep, large, or of another form."""
    for depth in DEPTHS:
        deep = "[" * depth + "]" * depth
        yield EVALUATIONS, one(f', "settings": {{"trials": {deep}}}')
        yield "/workflow/submit", f'{{"payload": {{"task_id": "d", "problem": "relu", "x": {deep}}}}}'
        yield "/verify", rollout(more=f', "x": {deep}')
        for source in ("(" * depth + "1", "-" * depth + "1", "1" + "+1" * depth, "a" + ".b" * depth):
            yield EVALUATIONS, json.dumps({"source": "x", "reference": f"class Model: pass\nx = {source}"})
    yield "/verify", rollout("x" * 1_000_001)
    yield "/verify", rollout().replace('"message"', "[]")
    yield EVALUATIONS, one(', "source": "twice", "problem": "linear"')
    twice = '{"task_id": "b", "problem": "relu", "kernel_code": '
    yield "/evaluate/batch", f'{{"batch_id": "b", "tasks": [{twice}"1"}}, {twice}"2"}}]}}'
    for path in (EVALUATIONS, "/evaluate", "/evaluate/batch", "/workflow/submit", "/verify", "/get_reward"):
        for raw in (b"", b"null", b"[]", b'"x"', b"\xff\xfe{\0}\0", b"\xef\xbb\xbf{}", b'{"a":1,"a":2}'):
            yield path, raw
        yield path, '{"evaluations": [{}], "tasks": [1], "payload": 1, "query": 1, "response": []}'


@pytest.mark.ci
@pytest.mark.parametrize("store", BOTH, indirect=True)
def test_hostile_texts(url: str) -> None:
    send(url, texts())


@pytest.mark.ci
@pytest.mark.parametrize("store", ["sqlite"], indirect=True)
@pytest.mark.parametrize("hostile", [numbers, shapes])
def test_hostile_bodies(url: str, hostile: Callable[[], Iterator[tuple[str, str | bytes]]]) -> None:
    send(url, hostile())


def send(url: str, sent: Iterable[tuple[str, str | bytes]]) -> None:
    """Sends all of it. Every answer is a success or a refusal that says why."""
    with httpx2.Client(base_url=url, timeout=60) as client:
        for path, body in sent:
            raw = body if isinstance(body, bytes) else body.encode()
            answer = client.post(path, content=raw, headers=JSON)
            if path == "/get_reward" and answer.status_code == 503:
                assert answer.headers["retry-after"] == "1"
                continue
            assert answer.status_code < 500, f"{path} {raw[:300]!r}: {answer.text[:300]}"
            assert answer.is_success or set(answer.json()["error"]) == {"code", "message"}


@pytest.mark.ci
@pytest.mark.parametrize("store", BOTH, indirect=True)
def test_hostile_paths_headers_and_transfers(url: str) -> None:
    with httpx2.Client(base_url=url, timeout=60) as client:

        def ask(method: str, path: str, **request: Any) -> int:
            answer = client.request(method, path, **request)
            assert answer.status_code < 500, f"{method} {path!r:.80}: {answer.text[:300]}"
            return answer.status_code

        for name in ("%00", "a%00b", "%ff", "%ed%a0%80", "x" * 5000, "..%2f..%2fetc", "\N{SNOWMAN}"):
            for path in (EVALUATIONS, "/status", "/results", "/workflow/results"):
                assert ask("GET", f"{path}/{name}") == 404
            assert ask("DELETE", f"{EVALUATIONS}/{name}") == ask("DELETE", f"/tasks/{name}") == 404
            assert ask("GET", f"{EVALUATIONS}/{name}/events") == 404
        for wait in ("nan", "inf", "-1", "1e400", "x", "%00", "9" * 500):
            assert ask("GET", f"{EVALUATIONS}/x?wait={wait}") == 422
        for key in (b"\xff", b"\xc3\xbc", b"k" * 300):
            headers = [(b"content-type", b"application/json"), (b"idempotency-key", key)]
            assert ask("POST", EVALUATIONS, content=one("").encode(), headers=headers) in (200, 202, 422)
        for kind in ("text/plain", "multipart/form-data; boundary=x", "application/json; charset=utf-16", ""):
            assert ask("POST", EVALUATIONS, content=b"{}", headers={"Content-Type": kind}) == 422
        sent = client.post(EVALUATIONS, content=iter([b'{"problem": "relu",', b'"source": "x"}']))
        # The worker may have ended it before the answer is written.
        assert sent.status_code == (202 if sent.json()["state"] in OPEN else 200)
        assert client.get(f"{EVALUATIONS}/{sent.json()['id']}").status_code == 200
        for method in ("PUT", "PATCH", "OPTIONS", "TRACE", "HEAD"):
            assert ask(method, EVALUATIONS) == 405
        for host in (b"\xff", b"[", b"127.0.0.1:99999999", b""):
            assert ask("GET", "/v1/queue", headers=[(b"host", host)]) in (200, 400)


CHUNKED = b"POST /v1/evaluations HTTP/1.1\r\nHost: 127.0.0.1\r\nTransfer-Encoding: chunked\r\n\r\n"


@pytest.mark.parametrize("store", ["sqlite"], indirect=True)
@pytest.mark.parametrize(
    "sent",
    [
        CHUNKED + b"zz\r\n",
        CHUNKED + b"ffffffffffffffffffff\r\n",
        CHUNKED + b"5\r\n{\r\n0\r\n\r\n",
        CHUNKED.replace(b"\r\n\r\n", b"\r\nContent-Length: 3\r\n\r\n") + b"2\r\n{}\r\n0\r\n\r\n",
        b"POST /v1/evaluations HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: -1\r\n\r\n",
        b"POST /v1/evaluations HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 10\r\n\r\n{}",
        b"GET /v1/queue HTTP/9.9\r\n\r\n",
        b"\x16\x03\x01\x02\x00",
    ],
)
def test_broken_transfers(url: str, sent: bytes) -> None:
    host, port = url.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port)), timeout=60) as connection:
        connection.sendall(sent)
        connection.shutdown(socket.SHUT_WR)
        said = b""
        with suppress(ConnectionResetError):
            while more := connection.recv(65_536):
                said += more
    assert b" 500 " not in said.partition(b"\r\n")[0]
    assert httpx2.get(url + "/health", timeout=60).status_code == 200
