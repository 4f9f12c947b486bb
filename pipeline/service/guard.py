"""What stands before the routes: who may call, how large a request may be, and how every error is told."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, MutableMapping
from dataclasses import dataclass
from typing import Any

from fastapi import Request
from fastapi.responses import JSONResponse
from starlette.datastructures import Headers

from kernelproof.db.store import Store
from kernelproof.listening import is_ours

BODY_BYTES = 64 << 20
"""Most bytes of a request's body."""
LOCAL = "local"
"""The caller's name where no token is asked for."""

Message = MutableMapping[str, Any]
App = Callable[
    [Message, Callable[[], Awaitable[Message]], Callable[[Message], Awaitable[None]]], Awaitable[None]
]


class Refused(Exception):
    """A request that gets an error: the HTTP status, a word for programs, a sentence for people."""

    def __init__(self, status: int, code: str, message: str, **headers: str) -> None:
        super().__init__(message)
        self.status, self.code, self.message = status, code, message
        self.headers = {name.replace("_", "-"): value for name, value in headers.items()}


async def refused(_: Request, error: Exception) -> JSONResponse:
    """The answer to a refused request."""
    assert isinstance(error, Refused)
    return told(error.status, error.code, error.message, error.headers)


def told(status: int, code: str, message: str, headers: dict[str, str] | None = None) -> JSONResponse:
    """An error as the service tells it."""
    return JSONResponse({"error": {"code": code, "message": message}}, status, headers)


@dataclass(frozen=True)
class Known:
    """Who calls."""

    name: str
    quota: int | None
    """Most evaluations that may wait or run; None: no limit."""


class Door:
    """Lets callers in: those with a token, or everybody where the operator gave out none."""

    def __init__(self, store: Store, *, open_to_all: bool) -> None:
        self._store, self._open = store, open_to_all

    def caller(self, request: Request) -> Known:
        """Who calls. Raises Refused."""
        if self._open:
            return Known(LOCAL, None)
        kind, _, token = request.headers.get("authorization", "").partition(" ")
        found = self._store.service.callers.with_token(token.strip()) if kind.lower() == "bearer" else None
        if found is None:
            raise Refused(
                *(401, "unauthorized", "give a token that is accepted: Authorization: Bearer TOKEN"),
                WWW_Authenticate="Bearer",
            )
        return Known(found.name, found.quota)


class Named:
    """Refuses requests under a foreign name: a page of a foreign site can let its own name point to this
    machine (DNS rebinding)."""

    def __init__(self, app: App, names: Collection[str]) -> None:
        """`names`: hosts by which the service may be called; `*` among them: by all."""
        self._app, self._names = app, names

    async def __call__(
        self,
        scope: Message,
        receive: Callable[[], Awaitable[Message]],
        send: Callable[[Message], Awaitable[None]],
    ) -> None:
        """One request, as ASGI has it."""
        if scope["type"] != "http" or "*" in self._names:
            await self._app(scope, receive, send)
            return
        hosts = Headers(scope=scope).getlist("host")
        if is_ours(hosts, self._names, scope["server"][0]):
            await self._app(scope, receive, send)
            return
        why = "this name is not one of this service; --allow-host of serve-api adds one"
        await told(400, "host", why)(scope, receive, send)


class Bounded:
    """Refuses requests whose body is larger than BODY_BYTES, whether they say so or not."""

    def __init__(self, app: App) -> None:
        self._app = app

    async def __call__(
        self,
        scope: Message,
        receive: Callable[[], Awaitable[Message]],
        send: Callable[[Message], Awaitable[None]],
    ) -> None:
        """One request, as ASGI has it."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = dict(scope["headers"])
        size = headers.get(b"content-length", b"0")
        if not size.isdigit() or int(size) > BODY_BYTES:
            await _too_large()(scope, receive, send)
            return
        seen = 0

        async def counted() -> Message:
            nonlocal seen
            message = await receive()
            seen += len(message.get("body", b""))
            if seen > BODY_BYTES:
                raise Refused(413, "too_large", _LARGE)
            return message

        await self._app(scope, counted, send)


_LARGE = f"a request may have {BODY_BYTES >> 20} MiB at most; send fewer evaluations at once"


def _too_large() -> JSONResponse:
    return told(413, "too_large", _LARGE, {"Connection": "close"})
