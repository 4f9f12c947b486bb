"""The FastAPI application and its server: routes, middleware, error handlers, and below `LIVE` the pages of
`kernelproof serve`, only to be read. The service's own guards look at the name that it is called by, and at
passwords. The server ends in order while callers wait.
"""

from __future__ import annotations

import logging
import socket
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, closing, contextmanager
from typing import TYPE_CHECKING

import anyio
import anyio.to_thread
from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException

from kernelproof.errors import MachineError, StoreError
from kernelproof.http_server import HttpServer
from kernelproof.report.web import require
from kernelproof.service import evaluations, kernelgym, nemo_gym, openrlhf, operators
from kernelproof.service.middleware import (
    LIVE,
    REFUSALS,
    AuthMiddleware,
    BodyLimitMiddleware,
    HostMiddleware,
    Refused,
    database_unavailable,
    error_response,
    refusal_response,
)
from kernelproof.service.state import Service, Watch, with_body_schemas
from kernelproof.version import __version__
from kernelproof.workspace import DatabasePlace

if TYPE_CHECKING:
    from kernelproof.report.web.result_server import WebPages

PARTS = {
    "Evaluations": evaluations,
    "Operators": operators,
    "KernelGYM": kernelgym,
    "NeMo-Gym": nemo_gym,
    "OpenRLHF": openrlhf,
}
"""The modules with routes, by the name that their part of the API has in its documentation."""
THREADS = 8
"""Threads for requests. More would share one core, and all requests would be late."""


def make_app(
    service: Service, *, hosts: list[str], open_to_all: bool, live: WebPages | None = None
) -> FastAPI:
    """The application. `hosts`: host names that it answers to; `*` for all.

    `open_to_all`: callers need no token. `live`: the pages below LIVE, if any.
    """

    @asynccontextmanager
    async def alive(_: FastAPI) -> AsyncIterator[None]:
        async with anyio.create_task_group() as group:
            anyio.to_thread.current_default_thread_limiter().total_tokens = THREADS
            group.start_soon(service.watch.run)
            yield
            group.cancel_scope.cancel()

    app = FastAPI(title="kernelproof", version=__version__, lifespan=alive, docs_url=None, redoc_url=None)
    app.state.service, app.state.shows_live = service, live is not None
    app.state.open_to_all = open_to_all
    # The last one added runs first: a stranger cannot send a body.
    app.add_middleware(BodyLimitMiddleware)
    app.add_middleware(AuthMiddleware, store=service.store, open_to_all=open_to_all)
    app.add_middleware(HostMiddleware, names=hosts)
    app.add_exception_handler(Refused, refusal_response)
    app.add_exception_handler(RequestValidationError, _invalid)
    app.add_exception_handler(HTTPException, _http)
    app.add_exception_handler(StoreError, _store)
    for name, part in PARTS.items():
        app.include_router(part.router, responses=REFUSALS, tags=[name])
    if live is not None:
        app.mount(LIVE, live)
    plain = app.openapi
    app.openapi = lambda: with_body_schemas(plain())  # type: ignore[method-assign]  # FastAPI's own way to change it
    return app


async def _invalid(_: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, RequestValidationError)
    wrong = (f"{each['loc'][-1]}: {each['msg']}" for each in error.errors())
    return error_response(422, "invalid", "; ".join(wrong))


async def _http(_: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, HTTPException)
    return error_response(error.status_code, "http", str(error.detail), dict(error.headers or {}))


async def _store(_: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, StoreError)
    return database_unavailable(error)


def are_possible() -> bool:
    """Whether the packages that pages need are installed."""
    try:
        require()
    except MachineError:
        return False
    return True


@contextmanager
def live_pages(place: DatabasePlace) -> Iterator[WebPages]:
    """The pages of a database. Raises MachineError where what they need is not installed, StoreError."""
    require()
    from kernelproof.report.web.result_server import WebPages
    from kernelproof.report.web.site import ReconnectingStore
    from kernelproof.runs.bundles.writer import bundle_bytes

    with closing(ReconnectingStore(place)) as database:
        yield WebPages(database, None, LIVE, bundle_bytes)


GRACE_S = 2
"""Seconds that answers which are under way have when the server ends."""


class Server(HttpServer):
    """Answers all who wait, with what is known by then, before it waits for the ends of answers."""

    def __init__(self, app: FastAPI, watch: Watch) -> None:
        super().__init__(app, log_level="warning", timeout_graceful_shutdown=GRACE_S)
        self._watch = watch

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Ends the long polls and the events that go on by themselves; then as uvicorn does."""
        self._watch.end()
        # It tells at length of each answer that is cut off because its caller does not read.
        logging.getLogger("uvicorn.error").disabled = True
        await super().shutdown(sockets)
