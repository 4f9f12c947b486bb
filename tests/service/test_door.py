"""The door before all routes: nobody without a token gets anything, nor does a caller beyond its quota."""

from __future__ import annotations

import asyncio
import base64
import threading
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2
import pytest
from fastapi import FastAPI

from kernelproof.problems import open_suite
from kernelproof.service import middleware
from kernelproof.service.app import live_pages, make_app
from kernelproof.service.middleware import BODY_BYTES, PAGES
from kernelproof.service.schemas import Reader
from kernelproof.service.state import Service, Watch
from kernelproof.types import VerifySettings
from tests.cli.conftest import suite
from tests.db import samples

__all__ = ["suite"]

TASK = {"task_id": "1", "kernel_code": "x", "problem": "relu", "timeout": 1}
ROW = {
    "responses_create_params": {},
    "response": {"output": []},
    "verifier_metadata": {"problem": "relu"},
}
SUBMITTING: dict[str, Any] = {
    "/v1/evaluations": {"source": "x", "problem": "relu"},
    "/evaluate": TASK,
    "/evaluate/batch": {"batch_id": "b", "tasks": [TASK]},
    "/workflow/submit": {"payload": TASK},
    "/verify": ROW,
}
"""Routes that put something into the queue, each with a request."""
OTHERS = {"/seed_session", "/aggregate_metrics", "/get_reward"}
"""Routes of POST that put nothing into it, or that wait for a place."""


@dataclass
class Served:
    """The application in this process, with a caller that has a token and one place."""

    app: FastAPI
    token: str

    def ask(self, method: str, path: str, token: str | None = None, **request: Any) -> httpx2.Response:
        headers = {"Host": "localhost", **request.pop("headers", {})}
        if token is not None:
            headers["Authorization"] = f"Bearer {token}"

        async def asked() -> httpx2.Response:
            way = httpx2.ASGITransport(app=self.app)
            async with httpx2.AsyncClient(transport=way, base_url="http://localhost") as client:
                return await client.request(method, path, headers=headers, **request)

        return asyncio.run(asked())

    def routes(self) -> list[tuple[str, str]]:
        """Method and path of each route, as the application has them."""
        return sorted(_routes(self.app.routes))


def _routes(routes: Any, prefix: str = "") -> Iterator[tuple[str, str]]:
    for route in routes:
        inner = getattr(route, "original_router", None)  # FastAPI keeps included routers as they are
        if inner is not None:
            yield from _routes(inner.routes)
        elif (methods := getattr(route, "methods", None)) is not None:
            yield from ((method, route.path) for method in methods)
        else:
            yield from ((method, f"{route.path}/") for method in ("GET", "POST"))


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory, empty_database: Path, suite: Path) -> Iterator[Served]:
    folder = tmp_path_factory.mktemp("door")
    with samples.new_store(folder, empty_database) as store:
        token = store.service.callers.add("trainer", quota=1)
        reader = Reader(open_suite(suite), VerifySettings(backend="cpp"), False, threading.Lock())
        with live_pages(store.path) as live:
            service = Service(store, reader, Watch(store), 10)
            yield Served(make_app(service, hosts=["localhost"], open_to_all=False, live=live), token)


def test_no_route_gives_a_stranger_anything(served: Served) -> None:
    routes = served.routes()
    assert (
        ("POST", "/v1/evaluations") in routes
        and {("GET", "/live/"), ("GET", "/"), ("GET", "/docs")} <= {*routes}
        and len(routes) > 20
    )
    for method, path in [*routes, ("GET", "/nothing"), ("PATCH", "/v1/queue"), ("GET", "/live/attempts")]:
        for header in (None, "", "Bearer", "Bearer wrong", "Basic c29tZWJvZHk6", "Bearer " + "x" * 9000):
            answer = served.ask(method, path, headers={} if header is None else {"Authorization": header})
            if path == "/health":
                assert (answer.status_code, answer.json()) == (200, {"status": "ok"})
                continue
            assert answer.status_code == 401, (method, path)
            scheme = "Basic" if path in PAGES or path.startswith("/live/") else "Bearer"
            assert answer.headers["www-authenticate"].startswith(scheme)
            if method != "HEAD":
                assert set(answer.json()["error"]) == {"code", "message"}


def test_a_caller_beyond_its_quota_puts_nothing_into_the_queue(served: Served) -> None:
    posts = {path for method, path in served.routes() if method == "POST" and path != "/live/"}
    assert posts == {*SUBMITTING, *OTHERS}, "a new route of POST belongs to one of the two"
    one = SUBMITTING["/v1/evaluations"]
    assert served.ask("POST", "/v1/evaluations", served.token, json=one).status_code == 202
    for path, body in SUBMITTING.items():
        answer = served.ask("POST", path, served.token, json=body)
        assert answer.status_code == 429, (path, answer.text)
        assert answer.json()["error"]["code"] == "queue_full" and int(answer.headers["retry-after"]) > 0
    states = served.ask("GET", "/v1/queue", served.token).json()["states"]
    assert sum(states.values()) == 1
    both = served.ask("POST", "/v1/evaluations", served.token, json={"evaluations": [one, one]})
    assert both.status_code == 413 and both.json()["error"]["code"] == "too_many"
    assert "has 1 places in all, and these need 2; send at most 1" in both.json()["error"]["message"]


def test_a_token_opens_and_only_pages_take_it_as_a_password(served: Served) -> None:
    assert served.ask("GET", "/health", served.token).json()["workers"] == 0
    password = base64.b64encode(f"anybody:{served.token}".encode()).decode()
    basic = {"Authorization": f"Basic {password}"}
    assert served.ask("GET", "/health", headers={"Host": "evil.example"}).status_code == 400
    page = served.ask("GET", "/live/", headers=basic)
    assert page.status_code == 200 and "Kernels that were verified" in page.text
    assert "script-src 'sha256-" in page.headers["content-security-policy"]
    assert served.ask("POST", "/live/", headers=basic).status_code == 405
    for path in ("/", "/docs", "/openapi.json"):
        assert served.ask("GET", path, headers=basic).status_code == 200
    assert served.ask("GET", "/v1/queue", headers=basic).status_code == 401
    assert served.ask("GET", "/live/", headers={"Authorization": "Basic %%%"}).status_code == 401


@pytest.mark.parametrize("size", [str(BODY_BYTES + 1), "9" * 5000, "many"])
def test_a_body_that_is_too_large_is_not_read(served: Served, size: str) -> None:
    answer = served.ask("POST", "/v1/evaluations", served.token, headers={"Content-Length": size})
    assert answer.status_code == 413


def test_all_bodies_together_are_bounded(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(middleware, "BODIES_BYTES", 1 << 20)

    async def beside_another() -> tuple[int, int]:
        """A small body while a large one is held, and after it was answered."""
        held, goes_on = asyncio.Event(), asyncio.Event()

        async def slow() -> AsyncIterator[bytes]:
            yield b" " * (1 << 20)
            held.set()
            await goes_on.wait()

        way = httpx2.ASGITransport(app=served.app)
        headers = {"Authorization": f"Bearer {served.token}", "Host": "localhost"}
        async with httpx2.AsyncClient(transport=way, base_url="http://localhost", headers=headers) as client:
            large = asyncio.create_task(client.post("/v1/evaluations", content=slow()))
            await held.wait()
            beside = await client.post("/v1/evaluations", content=b"[]")
            goes_on.set()
            await large
            return beside.status_code, (await client.post("/v1/evaluations", content=b"[]")).status_code

    assert asyncio.run(beside_another()) == (503, 422)
