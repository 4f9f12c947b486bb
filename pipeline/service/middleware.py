"""ASGI middleware before all routes: checks the host name, the caller's token and the size of the body.

No route can forget these checks, and to a stranger an uncaller route looks like any other.
"""

from __future__ import annotations

import base64
import binascii
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Collection
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import anyio
import anyio.to_thread
from fastapi import Request
from fastapi.responses import JSONResponse
from pydantic import BaseModel, Field
from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from kernelproof.db.store import Store
from kernelproof.errors import StoreError
from kernelproof.listening import is_ours

BODY_BYTES = 64 << 20
"""Most bytes of a request's body."""
BODIES_BYTES = 512 << 20
"""Most bytes of the bodies of all open requests."""
AT_ONCE = 2048
"""Most open requests of one caller."""
POLLS = 64
"""Most open requests of one caller that wait for or follow an evaluation."""
BODY_S = 60.0
"""Longest pause, in seconds, while a body is sent."""
LOCAL = "local"
"""The caller's name where no token is needed."""
HEALTH = "/health"
"""The only path that answers strangers, and tells them nothing more."""
PAGES = HOME, DOCS, OPENAPI, LIVE = "/", "/docs", "/openapi.json", "/live"
"""The paths of the pages for browsers, which send the token as a password; below LIVE are more."""
STATE = "caller"
"""The key of the `Caller` in a request's state."""


class Refused(Exception):
    """A request that gets an error: the HTTP status, a word for programs, a sentence for people."""

    def __init__(self, status: int, code: str, message: str, **headers: str) -> None:
        super().__init__(message)
        self.status, self.code, self.message = status, code, message
        self.headers = {name.replace("_", "-"): value for name, value in headers.items()}


class Mistake(BaseModel):
    """The error."""

    code: str = Field(description="A word for programs.")
    message: str = Field(description="A sentence for people.")


class Told(BaseModel):
    """The body of every answer that is an error."""

    error: Mistake


REFUSALS: dict[int | str, dict[str, Any]] = {
    status: {"model": Told, "description": meaning}
    for status, meaning in (
        (400, "The body is not JSON, or the service is called by a foreign name."),
        (401, "No token, or one that is not accepted."),
        (404, "There is no such evaluation, or another caller sent it."),
        (408, "The body did not come."),
        (409, "The idempotency key came with another request, or the deadline cannot be met."),
        (413, "The body is too large, or a batch needs more places than the queue or the quota has."),
        (422, "The request makes no sense."),
        (429, "The queue has no place, or the caller no more. Retry-After says when to come again."),
        (503, "The service cannot answer now. Retry-After says when to come again."),
    )
}
"""The errors that a route may answer with, for its description."""


async def refusal_response(_: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, Refused)
    return error_response(error.status, error.code, error.message, error.headers)


def error_response(
    status: int, code: str, message: str, headers: dict[str, str] | None = None
) -> JSONResponse:
    """The response to an error; `code` is for programs, `message` for people."""
    return JSONResponse({"error": {"code": code, "message": message}}, status, headers)


def database_unavailable(error: StoreError) -> JSONResponse:
    """The response while the database cannot be used."""
    return error_response(503, "database", str(error), {"Retry-After": "5"})


@dataclass(frozen=True)
class Caller:
    name: str
    quota: int | None
    """Most evaluations that may wait or run; None: no limit."""
    begin_poll: Callable[[], None] = lambda: None
    """Called by a request that will wait. Raises Refused if the caller has POLLS of them."""


class _Middleware(ABC):
    """Checks each request before the application sees it."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answers a refused request, and passes the others on."""
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        if scope["type"] != "http":  # no route is for web sockets
            await send({"type": "websocket.close", "code": 1008})
            return
        with ExitStack() as over:
            try:
                receive = await self._checked(scope, receive, over)
            except Refused as error:
                await error_response(error.status, error.code, error.message, error.headers)(
                    scope, receive, send
                )
                return
            except StoreError as error:
                await database_unavailable(error)(scope, receive, send)
                return
            await self._app(scope, receive, send)

    @abstractmethod
    async def _checked(self, scope: Scope, receive: Receive, over: ExitStack) -> Receive:
        """The `receive` of a request that may pass. `over` ends with it. Raises Refused, StoreError."""


class HostMiddleware(_Middleware):
    """Refuses requests to foreign host names, against DNS rebinding: a foreign site may let its name point
    to this machine."""

    def __init__(self, app: ASGIApp, names: Collection[str]) -> None:
        """`names`: accepted host names; `*` accepts all."""
        super().__init__(app)
        self._names = names

    async def _checked(self, scope: Scope, receive: Receive, over: ExitStack) -> Receive:
        hosts = Headers(scope=scope).getlist("host")
        if "*" not in self._names and not is_ours(hosts, self._names, scope["server"][0]):
            why = "this name is not one of this service; --allow-host of service api adds one"
            raise Refused(400, "host", why)
        return receive


class AuthMiddleware(_Middleware):
    """Admits callers with a valid token, or everybody if no tokens exist."""

    def __init__(self, app: ASGIApp, store: Store, *, open_to_all: bool) -> None:
        super().__init__(app)
        self._store, self._open = store, open_to_all
        self._open_requests: Counter[str] = Counter()
        self._polls: Counter[str] = Counter()

    async def _checked(self, scope: Scope, receive: Receive, over: ExitStack) -> Receive:
        caller = Caller(LOCAL, None) if self._open else await self._caller(scope)
        if caller is not None:
            caller = replace(caller, begin_poll=partial(_enter, self._polls, caller.name, POLLS, over))
        scope.setdefault("state", {})[STATE] = caller
        if caller is None:
            if scope["path"] == HEALTH:
                return receive
            scheme = 'Basic realm="kernelproof"' if _is_page(scope) else "Bearer"
            why = "give a token that is accepted: Authorization: Bearer TOKEN"
            raise Refused(401, "unauthorized", why, WWW_Authenticate=scheme)
        _enter(self._open_requests, caller.name, AT_ONCE, over)
        return receive

    async def _caller(self, scope: Scope) -> Caller | None:
        token = _token(scope)
        if token is None:
            return None
        row = await anyio.to_thread.run_sync(self._store.service.callers.with_token, token)
        return None if row is None else Caller(row.name, row.quota)


def _enter(open_requests: Counter[str], name: str, most: int, over: ExitStack) -> None:
    """Counts a caller's request until `over` ends. Raises Refused."""
    if open_requests[name] >= most:
        what = "requests that wait" if most == POLLS else "requests that are not answered"
        raise Refused(
            429, "too_many_requests", f"the caller has {most} {what}; ask again later", Retry_After="1"
        )
    open_requests[name] += 1

    def leave() -> None:
        open_requests[name] -= 1
        if not open_requests[name]:
            del open_requests[name]

    over.callback(leave)


def _is_page(scope: Scope) -> bool:
    return scope["path"] in PAGES or scope["path"].startswith(f"{LIVE}/")


def _token(scope: Scope) -> str | None:
    """The token of a request; for pages also the password of basic authentication."""
    values = Headers(scope=scope).getlist("authorization")
    if len(values) != 1:
        return None
    kind, _, rest = values[0].partition(" ")
    if kind.lower() == "bearer":
        return rest.strip()
    if kind.lower() == "basic" and _is_page(scope):
        try:
            return base64.b64decode(rest.strip(), validate=True).decode().partition(":")[2]
        except (binascii.Error, UnicodeDecodeError):
            return None
    return None


class BodyLimitMiddleware(_Middleware):
    """Refuses bodies above BODY_BYTES, declared or not, and requests that would take the sum of all bodies
    above BODIES_BYTES."""

    def __init__(self, app: ASGIApp) -> None:
        super().__init__(app)
        self._held = 0

    async def _checked(self, scope: Scope, receive: Receive, over: ExitStack) -> Receive:
        size = Headers(scope=scope).get("content-length", "0")
        if not size.isascii() or not size.isdigit() or len(size) > 18 or int(size) > BODY_BYTES:
            raise Refused(413, "too_large", _LARGE)
        if self._held + int(size) > BODIES_BYTES:
            raise Refused(503, "busy", _FULL, Retry_After="1")
        seen, more_body = 0, True

        def forget() -> None:
            self._held -= seen

        over.callback(forget)

        async def counted() -> Message:
            nonlocal seen, more_body
            with anyio.move_on_after(BODY_S if more_body else None) as limit:
                message = await receive()
            if limit.cancelled_caught:
                raise Refused(408, "too_slow", f"nothing of the body came for {BODY_S:g} s; send this again")
            more_body = message.get("more_body", False)
            more = len(message.get("body", b""))
            seen += more
            self._held += more
            if seen > BODY_BYTES:
                raise Refused(413, "too_large", _LARGE)
            if self._held > BODIES_BYTES:
                raise Refused(503, "busy", _FULL, Retry_After="1")
            return message

        return counted


_LARGE = f"a request may have {BODY_BYTES >> 20} MiB at most; send fewer evaluations at once"
_FULL = f"the requests that are not answered yet hold {BODIES_BYTES >> 20} MiB; send this again later"
