"""The rules before every address: only reading, only under names of ours, and headers that bind the page.

A page of a foreign site can let its own name point to this machine (DNS rebinding) and would then be of one
origin with our pages. The browser still sends the foreign name as `Host`, so that name is refused.
"""

from __future__ import annotations

from collections.abc import Collection

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from kernelproof.listening import is_ours

UNFRAMED = "frame-ancestors 'none'"
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


class Guard:
    """An application behind these rules."""

    def __init__(self, app: ASGIApp, names: Collection[str] | None) -> None:
        """`names`: hosts under which it may be asked, beside the address that a connection came to.

        None: what stands before it has asked for the name.
        """
        self._app = app
        self._names = names

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
