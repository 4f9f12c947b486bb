"""Connections to a model's server: thousands at once, and none that dies in silence.

`httpx2` and `openai` are imported only where a client is made.
"""

from __future__ import annotations

import socket
import ssl
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import anyio
import anyio.to_thread

from kernelproof.errors import ProviderFatal, UsageError
from kernelproof.listening import allow_open_files
from kernelproof.providers.server_errors import complaint_of_reply

if TYPE_CHECKING:
    import httpx2
    import openai

EACH = 50
"""Connections of one client. A client looks at all its connections for each request: of 2,000 in one, that
took most of the time."""
CONNECT_S = 30.0
"""A connection that is not made within so many seconds is given up."""
_SPARE_FILES = 200
"""Open files that the rest of the process needs."""
_MANY_FILES = 65536
_MAX_ERROR_BYTES = 1 << 20
"""Bytes of an error that are read."""
_KEEP_ALIVE = (
    (socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1),
    (socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, 60),
    (socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, 30),
    (socket.IPPROTO_TCP, socket.TCP_KEEPCNT, 6),
)
"""TCP probes a connection after 60 seconds of silence, then six times every 30. Routers forget a connection
on which nothing is sent for some minutes, and a model may think for longer."""


@dataclass
class _Shared:
    client: openai.AsyncOpenAI
    used: int = 0


class Connections:
    """Clients for one server and key, as many as the questions in flight need. For one event loop."""

    def __init__(self, key: str, url: str | None, timeout_s: float) -> None:
        """`timeout_s`: longest silence of the server, in seconds."""
        self._key, self._url, self._timeout_s = key, url, timeout_s
        self._clients: list[_Shared] = []
        self._tls: ssl.SSLContext | None = None
        self._importing, self._imported = anyio.Lock(), False

    async def ready(self) -> None:
        """Imports what clients need, in a thread: it takes half a second, in which the display, Ctrl-C and a
        reader that is gone would have to wait."""
        async with self._importing:
            if not self._imported:
                await anyio.to_thread.run_sync(import_module, "openai")
                self._imported = True

    @contextmanager
    def client(self) -> Iterator[openai.AsyncOpenAI]:
        """A client with a free connection, for one question. Raises ProviderFatal for an unfit proxy."""
        shared = next((each for each in self._clients if each.used < EACH), None)
        if shared is None:
            shared = _Shared(self._new_client())
            self._clients.append(shared)
        shared.used += 1
        try:
            yield shared.client
        finally:
            shared.used -= 1

    async def aclose(self) -> None:
        """Close all connections."""
        clients, self._clients = self._clients, []
        for shared in clients:
            await shared.client.close()

    def _new_client(self) -> openai.AsyncOpenAI:
        import httpx2
        import openai

        self._tls = self._tls or httpx2.create_ssl_context()
        proxy = proxy_for(self._url or "https://api.openai.com")
        try:
            transport = httpx2.AsyncHTTPTransport(
                verify=self._tls,
                limits=httpx2.Limits(max_connections=EACH, max_keepalive_connections=EACH),
                proxy=proxy,
                socket_options=_KEEP_ALIVE,
            )
            http_client = openai.DefaultAsyncHttpxClient(
                transport=transport, event_hooks={"response": [_raise_for_status]}
            )
            return openai.AsyncOpenAI(
                api_key=self._key,
                base_url=self._url,
                max_retries=0,  # the provider asks again, and learns from it
                timeout=httpx2.Timeout(self._timeout_s, connect=min(CONNECT_S, self._timeout_s), pool=None),
                http_client=http_client,
            )
        except (ImportError, ValueError, httpx2.InvalidURL) as error:
            where = f" through the proxy {proxy}" if proxy else ""
            raise ProviderFatal(f"{self._url} cannot be asked{where}: {error}") from error


def checked_url(url: str) -> str:
    """The URL of a server. Raises UsageError for one that is none."""
    try:
        parts = urlsplit(url)
        fits = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        fits = False
    if not fits or any(character.isspace() or not character.isprintable() for character in url):
        raise UsageError(f"base URL {url!r} must start with http:// or https:// and name a server")
    return url


def proxy_for(url: str) -> str | None:
    """The proxy that the environment names for a server: HTTPS_PROXY, HTTP_PROXY, ALL_PROXY, not NO_PROXY."""
    parts = urlsplit(url)
    found = urllib.request.getproxies()
    proxy = found.get(parts.scheme) or found.get("all")
    if not proxy or urllib.request.proxy_bypass(parts.netloc.rpartition("@")[2]):
        return None
    return proxy if "://" in proxy else f"http://{proxy}"


def allow_connections(most: int) -> None:
    """Lets this process have so many connections at once, beside its other files.

    Raises UsageError where the system does not allow it.
    """
    needed = most + _SPARE_FILES
    allowed = allow_open_files(needed, raise_to=_MANY_FILES)  # a run may have several models
    if allowed < needed:
        raise UsageError(
            f"--concurrency {most} needs {needed} open files, and {allowed} are allowed (ulimit -n); "
            f"at most --concurrency {max(1, allowed - _SPARE_FILES)} works here"
        )


async def _raise_for_status(response: httpx2.Response) -> None:
    """Raises an error of HTTP with as much of its body as a person reads: the rest may have no end."""
    import httpx2
    import openai

    if response.is_success or response.has_redirect_location:
        return
    body = bytearray()
    with suppress(httpx2.HTTPError):  # an error that breaks off is an error all the same
        async for piece in response.aiter_bytes():
            body += piece
            if len(body) > _MAX_ERROR_BYTES:
                break
    found = complaint_of_reply(response.status_code, response.reason_phrase, bytes(body))
    raise openai.APIStatusError(found.message, response=response, body=found)
