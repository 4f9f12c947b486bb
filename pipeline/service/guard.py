"""The checks before all routes: the name that is called, the caller, and the size of the request.

Every guard is an ASGI application around the next one. So a route cannot forget them, and a route that is not
there tells a stranger as little as one that is.
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
"""Most bytes of the bodies of all requests that are not answered yet."""
AT_ONCE = 2048
"""Most requests of one caller that are not answered yet."""
POLLS = 64
"""Most requests of one caller that wait for an end, or follow an evaluation."""
BODY_S = 60.0
"""A caller that sends nothing of its body for so many seconds is not waited for."""
LOCAL = "local"
"""The caller's name where no token is asked for."""
HEALTH = "/health"
"""The only address that answers to everybody, and tells strangers nothing but that it answers."""
LIVE = "/live"
"""Below it are the pages for browsers, which ask for the token as a password."""
STATE = "caller"
"""Where the door leaves who calls: in a request's state."""


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


async def refused(_: Request, error: Exception) -> JSONResponse:
    """The answer to a refused request."""
    assert isinstance(error, Refused)
    return told(error.status, error.code, error.message, error.headers)


def told(status: int, code: str, message: str, headers: dict[str, str] | None = None) -> JSONResponse:
    """An error as the service tells it."""
    return JSONResponse({"error": {"code": code, "message": message}}, status, headers)


def away(error: StoreError) -> JSONResponse:
    """The answer where the database cannot be used."""
    return told(503, "database", str(error), {"Retry-After": "5"})


@dataclass(frozen=True)
class Known:
    """A caller."""

    name: str
    quota: int | None
    """Most evaluations that may wait or run; None: no limit."""
    begin_poll: Callable[[], None] = lambda: None
    """Called by a request that will wait. It raises Refused where the caller has POLLS of them."""


class _Guard(ABC):
    """An application behind a check of each request."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answers a request that is refused; lets the others pass."""
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
                await told(error.status, error.code, error.message, error.headers)(scope, receive, send)
                return
            except StoreError as error:
                await away(error)(scope, receive, send)
                return
            await self._app(scope, receive, send)

    @abstractmethod
    async def _checked(self, scope: Scope, receive: Receive, over: ExitStack) -> Receive:
        """The application's way to receive. `over` ends with the request. Raises Refused, StoreError."""


class Named(_Guard):
    """Refuses requests under a foreign name: a page of a foreign site can let its own name point to this
    machine (DNS rebinding)."""

    def __init__(self, app: ASGIApp, names: Collection[str]) -> None:
        """`names`: hosts by which the service may be called; `*` among them: by all."""
        super().__init__(app)
        self._names = names

    async def _checked(self, scope: Scope, receive: Receive, over: ExitStack) -> Receive:
        hosts = Headers(scope=scope).getlist("host")
        if "*" not in self._names and not is_ours(hosts, self._names, scope["server"][0]):
            why = "this name is not one of this service; --allow-host of serve-api adds one"
            raise Refused(400, "host", why)
        return receive


class Door(_Guard):
    """Lets callers in: those with a token, or everybody where the operator gave out none."""

    def __init__(self, app: ASGIApp, store: Store, *, open_to_all: bool) -> None:
        super().__init__(app)
        self._store, self._open = store, open_to_all
        self._inside: Counter[str] = Counter()
        self._polls: Counter[str] = Counter()

    async def _checked(self, scope: Scope, receive: Receive, over: ExitStack) -> Receive:
        known = Known(LOCAL, None) if self._open else await self._caller(scope)
        if known is not None:
            known = replace(known, begin_poll=partial(_enter, self._polls, known.name, POLLS, over))
        scope.setdefault("state", {})[STATE] = known
        if known is None:
            if scope["path"] == HEALTH:
                return receive
            scheme = 'Basic realm="kernelproof"' if _is_live(scope) else "Bearer"
            why = "give a token that is accepted: Authorization: Bearer TOKEN"
            raise Refused(401, "unauthorized", why, WWW_Authenticate=scheme)
        _enter(self._inside, known.name, AT_ONCE, over)
        return receive

    async def _caller(self, scope: Scope) -> Known | None:
        token = _token(scope)
        if token is None:
            return None
        found = await anyio.to_thread.run_sync(self._store.service.callers.with_token, token)
        return None if found is None else Known(found.name, found.quota)


def _enter(inside: Counter[str], name: str, most: int, over: ExitStack) -> None:
    """Counts a request of a caller's until `over` ends. Raises Refused."""
    if inside[name] >= most:
        what = "requests that wait" if most == POLLS else "requests that are not answered"
        raise Refused(
            429, "too_many_requests", f"the caller has {most} {what}; ask again later", Retry_After="1"
        )
    inside[name] += 1

    def leave() -> None:
        inside[name] -= 1
        if not inside[name]:
            del inside[name]

    over.callback(leave)


def _is_live(scope: Scope) -> bool:
    return bool(scope["path"] == LIVE or scope["path"].startswith(f"{LIVE}/"))


def _token(scope: Scope) -> str | None:
    """The token of a request; for a browser's pages also as the password of HTTP's basic scheme."""
    given = Headers(scope=scope).getlist("authorization")
    if len(given) != 1:
        return None
    kind, _, rest = given[0].partition(" ")
    if kind.lower() == "bearer":
        return rest.strip()
    if kind.lower() == "basic" and _is_live(scope):
        try:
            return base64.b64decode(rest.strip(), validate=True).decode().partition(":")[2]
        except (binascii.Error, UnicodeDecodeError):
            return None
    return None


class Bounded(_Guard):
    """Refuses requests whose body is larger than BODY_BYTES, whether they say so or not, and those that
    would make all bodies larger than BODIES_BYTES."""

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
