"""Server-sent events: browsers are told in which state the database is, at once and whenever it changes."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator, Callable

import anyio
from starlette.responses import PlainTextResponse
from starlette.types import Receive, Scope, Send

from kernelproof.db.newest import State

LOOK_S = 1.0
"""Seconds between two looks at the database."""
SHARE = 0.1
"""Most of the time that is spent looking: at a large database it is looked less often."""
BEAT_S = 15.0
"""Seconds after which a client without news gets a comment, so that nothing between takes it for dead."""
MOST_CLIENTS = 64
_START = {
    "type": "http.response.start",
    "status": 200,
    "headers": [(b"content-type", b"text/event-stream; charset=utf-8")],
}


class Events:
    """The address `/events`. The database is looked at as long as somebody listens."""

    def __init__(self, look: Callable[[], State], most_clients: int = MOST_CLIENTS) -> None:
        """`look`: the state now; it runs in a thread."""
        self._look = look
        self._most = most_clients
        self._thread = anyio.CapacityLimiter(1)
        self._state: State | None = None
        self._news = asyncio.Event()
        self._looking: asyncio.Task[None] | None = None
        self.clients = 0
        """Those that listen now."""
        self.closed = False

    def close(self) -> None:
        """Ends all answers: the server stops."""
        self.closed = True
        self._news.set()
        if self._looking is not None:
            self._looking.cancel()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answers a client until it goes, or the server stops. One too many is refused with 503."""
        if self.clients >= self._most:
            words = f"{self._most} pages are open already; close one, or reload this one now and then"
            await PlainTextResponse(words, 503, {"retry-after": "30"})(scope, receive, send)
            return
        if scope["method"] == "HEAD":
            await send(_START)
            await send({"type": "http.response.body"})
            return
        self.clients += 1
        try:
            async with anyio.create_task_group() as group:
                group.start_soon(_until_gone, receive, group.cancel_scope)
                await send(_START)
                async for text in self._texts():
                    await send({"type": "http.response.body", "body": text, "more_body": True})
                await send({"type": "http.response.body"})
                group.cancel_scope.cancel()
        finally:
            self.clients -= 1

    async def _texts(self) -> AsyncIterator[bytes]:
        told: State | None = None
        while not self.closed:
            if self._looking is None or self._looking.done():
                self._state = None  # of before nobody listened
                self._looking = asyncio.create_task(self._watch())
            news = self._news
            if self._state is not None and self._state != told:
                told = self._state
                yield f"event: state\ndata: {json.dumps(told._asdict())}\n\n".encode()
                continue
            with anyio.move_on_after(BEAT_S) as waiting:
                await news.wait()
            if waiting.cancelled_caught:
                yield b": nothing new\n\n"

    async def _watch(self) -> None:
        """Looks again and again."""
        while self.clients and not self.closed:
            began = time.monotonic()
            state = await anyio.to_thread.run_sync(self._look, limiter=self._thread)
            if state != self._state:
                self._state = state
                news, self._news = self._news, asyncio.Event()
                news.set()
            took = time.monotonic() - began
            await asyncio.sleep(max(LOOK_S, took / SHARE))


async def _until_gone(receive: Receive, others: anyio.CancelScope) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
    others.cancel()
