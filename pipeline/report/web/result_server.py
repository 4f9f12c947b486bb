"""The pages over HTTP: their addresses, the rules before each of them, and `kernelproof serve`.

A page of a foreign site can let its own name point to this machine (DNS rebinding) and would then be of one
origin with our pages. The browser still sends the foreign name as `Host`, so that name is refused.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import signal
import socket
import sys
from collections.abc import Callable, Collection, Iterator

from starlette.applications import Starlette
from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, PlainTextResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from kernelproof.choices import ROW
from kernelproof.errors import StoreError, UsageError
from kernelproof.http_server import HttpServer
from kernelproof.listening import LOOPBACK, in_url, is_local, is_ours, listening_at
from kernelproof.report.web.facts import Bundler
from kernelproof.report.web.pages import message
from kernelproof.report.web.query import query_filters
from kernelproof.report.web.rendering import UNFRAMED, Page
from kernelproof.report.web.site import ReconnectingStore, Site
from kernelproof.workspace import DatabasePlace

GRACE_S = 2
"""Seconds that answers have to end when the server stops."""
"""A rule that a page itself cannot make: no other page may hold it."""
HEADERS = {
    "content-security-policy": f"default-src 'none'; base-uri 'none'; form-action 'none'; {UNFRAMED}",
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "cache-control": "no-store",
}
"""Of every answer that does not set them itself."""


class WebPages:
    """The pages of a database as an ASGI application: only reading, only under names of ours, and with
    headers that bind the page."""

    def __init__(
        self,
        database: ReconnectingStore,
        names: Collection[str] | None,
        base: str = "",
        bundler: Bundler | None = None,
    ) -> None:
        """`names`: hosts under which it may be asked, beside the address that a connection came to. None:
        what stands before it has asked for the name. `base`: the address below which the pages are.
        `bundler`: as `Site` takes it."""
        self._names = names
        self._app = _router(Site(database, base, bundler))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answers, or refuses: 421 for a foreign name, 405 for a method that is not for reading."""

        async def send_bound(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers.setdefault(name, value)
            await send(message)

        await self._answer(scope)(scope, receive, send_bound)

    def _answer(self, scope: Scope) -> ASGIApp:
        hosts = Headers(scope=scope).getlist("host")
        if self._names is not None and not is_ours(hosts, self._names, scope["server"][0]):
            return PlainTextResponse(
                "This name is not one of this server. Use the address that kernelproof serve printed.", 421
            )
        if scope["method"] not in ("GET", "HEAD"):
            return PlainTextResponse("Only reading is possible here.", 405, {"allow": "GET, HEAD"})
        return self._app


def _router(site: Site) -> ASGIApp:
    def board(request: Request) -> Page:
        return site.board(query_filters(request.query_params.multi_items()))

    def attempts(request: Request) -> Page:
        query = request.query_params.multi_items()
        before = next((value for name, value in query if name == "before"), None)
        filters = query_filters((name, value) for name, value in query if name != "before")
        return site.attempts(filters, None if before is None else _number(before))

    def attempt(request: Request) -> Page:
        number = _number(request.path_params["number"])
        try:
            return site.attempt(number)
        except UsageError:
            raise HTTPException(404, f"There is no attempt {number}.") from None

    def progress(request: Request) -> Page:
        return site.progress()

    def state(request: Request) -> Response:
        return JSONResponse(site.state()._asdict())

    def answering(page: Callable[[Request], Page]) -> Callable[[Request], Response]:
        """What goes wrong becomes a page that says so."""

        def answer(request: Request) -> Response:
            try:
                return _answer(page(request))
            except UsageError as error:
                return error_page(400, "This cannot be asked", str(error))
            except StoreError as error:
                return error_page(503, "The database cannot be read", str(error))

        return answer

    def refused(request: Request, error: Exception) -> Response:
        assert isinstance(error, HTTPException)
        words = "There is no such page." if error.detail == "Not Found" else error.detail
        return error_page(error.status_code, "Not found" if error.status_code == 404 else "Refused", words)

    def error_page(status: int, heading: str, words: str) -> Response:
        return _answer(message(heading, words.split("\n"), site.base), status)

    return Starlette(
        routes=[
            Route("/", answering(board)),
            Route("/attempts", answering(attempts)),
            Route("/attempts/{number}", answering(attempt)),
            Route("/progress", answering(progress)),
            Route("/state", state),
        ],
        exception_handlers={HTTPException: refused},
    )


def _number(text: str) -> int:
    try:
        return int(ROW.number(text))
    except ValueError as error:
        raise HTTPException(404, f"The number of an attempt {error}.") from None


def _answer(page: Page, status: int = 200) -> Response:
    return HTMLResponse(page.text.encode("utf-8"), status, {"content-security-policy": page.header_policy})


def serve(
    place: DatabasePlace, host: str, port: int, ready: Callable[[str, bool], None], bundler: Bundler | None
) -> None:
    """Serves the pages of a database until SIGINT or SIGTERM.

    `ready` is told the address of the first page, and whether other machines reach it. `port`: 0 takes a free
    one. `bundler`: as `Site` takes it. Raises UsageError for a host that is none of this machine and where
    there is no database, MachineError for a port that cannot be had, StoreError for a database that cannot
    be used.
    """
    with contextlib.closing(ReconnectingStore(place)) as database, listening_at(host, port) as listening:
        address, number = listening.getsockname()[:2]
        reached = f"http://{in_url(address)}:{number}/", not is_local(address)
        asyncio.run(_serve(database, host, listening, lambda: ready(*reached), bundler))


class _Server(HttpServer):
    """A server that leaves signals to us: uvicorn would send itself the one that ended it once more."""

    def __init__(self, app: ASGIApp, ready: Callable[[], None]) -> None:
        super().__init__(
            app,
            lifespan="off",
            loop="asyncio",
            log_config=None,
            access_log=False,
            server_header=False,
            proxy_headers=False,
            timeout_graceful_shutdown=GRACE_S,
        )
        self._ready = ready

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self._ready()

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


async def _serve(
    database: ReconnectingStore,
    host: str,
    listening: socket.socket,
    ready: Callable[[], None],
    bundler: Bundler | None,
) -> None:
    server = _Server(WebPages(database, (*LOOPBACK, host), bundler=bundler), ready)

    def stop() -> None:
        server.force_exit = server.should_exit  # the second time
        server.should_exit = True
        logging.getLogger("uvicorn.error").disabled = True  # it tells of each answer that is cut off

    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, stop)
    await server.serve(sockets=[listening])
    if database.busy:
        # A thread is at work on an answer that nobody waits for. It only reads, but Python would wait for it,
        # which takes minutes where the database is large, or locked.
        sys.stdout.flush()
        os._exit(0)
