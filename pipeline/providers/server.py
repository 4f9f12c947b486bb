"""A model's server: thousands of connections at once, of which none dies in silence, and requests, each of
which is answered, or fails in our words and may be made again.

The openai package could retry by itself, and does not here. It would not lower the limit of questions after
429, would give a busy server up after as few tries as a broken one, and sees neither an answer that breaks
off nor an error in a reply with status 200. Two loops would multiply their tries.

`httpx2` and `openai` are imported only where a client is made.
"""

from __future__ import annotations

import socket
import ssl
import urllib.request
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, TypeVar
from urllib.parse import urlsplit

import anyio
import anyio.to_thread

from kernelproof.errors import ProviderError, ProviderFatal, UsageError
from kernelproof.listening import allow_open_files
from kernelproof.providers.pacing import backoff, retry_after
from kernelproof.providers.protocol import ProviderOptions
from kernelproof.providers.server_errors import (
    AnswerError,
    Complaint,
    Reaction,
    complaint_of_reply,
    reaction_to,
)

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


T = TypeVar("T")

PLACEHOLDER_KEY = "no-key"
"""Sent to a server that needs none."""
BUSY_TRIES = 20
"""The number of times that a request is made again because the server is busy (429), beside the other
retries."""
TLS_ERRORS = (ssl.SSLError, anyio.EndOfStream, anyio.BrokenResourceError, anyio.ClosedResourceError)
"""Of the layers below httpx2, which does not translate all of them."""


class Failure(ProviderError):
    """A request got no answer."""

    def __init__(self, message: str, reaction: Reaction, after_s: float | None = None) -> None:
        """`after_s`: the server asks to wait so long."""
        super().__init__(message, retriable=reaction.retry, of_question=reaction.of_question)
        self.reaction, self.after_s = reaction, after_s


class ModelServer:
    def __init__(
        self, name: str, key: str, key_variable: str, url: str | None, options: ProviderOptions
    ) -> None:
        """`name` is the model's, for messages; `key` is never shown, its variable's name is."""
        self.name, self.url = name, url
        self._key, self._key_variable, self._options = key, key_variable, options
        self.connections = Connections(key, url, options.timeout_s)

    async def insist(
        self,
        attempt: Callable[[], Awaitable[T]],
        retries: int,
        say: Callable[[Failure, float], None] = lambda _, __: None,
    ) -> T:
        """What `attempt` returns at last. After a failure that may pass it is called `retries` times more,
        with growing waits; `say` hears of each failure, and after how many seconds the next try follows.

        Raises ProviderFatal where no question can be answered, and the last Failure otherwise.
        """
        tries = busy = 0
        while True:
            try:
                return await attempt()
            except Failure as error:
                failure, reaction = error, error.reaction
            if reaction.fatal is not None:
                raise ProviderFatal(f"{self.name}: {reaction.fatal}") from failure
            pause_s = failure.after_s or backoff(busy if reaction.busy else tries)
            busy, tries = busy + reaction.busy, tries + (not reaction.busy)
            if not reaction.retry or tries > retries or busy > BUSY_TRIES:
                raise failure
            say(failure, pause_s)
            await anyio.sleep(pause_s)

    async def attempt(
        self,
        work: Callable[[openai.AsyncOpenAI], Awaitable[T]],
        what: str,
        sent: Mapping[str, object] | None = None,
    ) -> T:
        """What `work` returns. `what` it is for is named in messages; `sent` are the fields of the request.

        Raises Failure, and ProviderFatal where `work` does.
        """
        await self.connections.ready()
        import httpx2
        import openai

        try:
            with self.connections.client() as client:
                return await work(client)
        except Failure:
            raise
        except openai.APIStatusError as error:
            after_s = retry_after(error.response.headers)
            assert isinstance(error.body, Complaint)
            raise self.failure(error.body, sent or {}, after_s=after_s) from error
        except AnswerError as error:
            raise self.failure(error.complaint, sent or {}, f"{error.context}: ") from error
        except ProviderError as error:
            again = Reaction(retry=error.retriable, of_question=error.of_question)
            raise Failure(f"{self.name}: {self.safe(str(error))}", again) from error
        except (openai.APITimeoutError, httpx2.TimeoutException) as error:
            why = f"said nothing for {self._options.timeout_s:g} s (--timeout): {what}"
            if isinstance(error.__cause__ or error, httpx2.ConnectTimeout):
                why = f"cannot be reached: no connection within {CONNECT_S:g} s"
            raise Failure(f"{self.name} {why}", Reaction(retry=True)) from error
        except (openai.OpenAIError, httpx2.HTTPError, httpx2.StreamError, *TLS_ERRORS) as error:
            cause = error.__cause__ or error
            why = f"cannot be reached, or broke off: {self.safe(str(cause)) or type(cause).__name__}"
            raise Failure(f"{self.name} {why}", Reaction(retry=True)) from error

    def failure(
        self, complaint: Complaint, sent: Mapping[str, object], where: str = "", after_s: float | None = None
    ) -> Failure:
        """What an error in the server's words means; `where` it stood, for the message."""
        has_key, variable = self._key != PLACEHOLDER_KEY, self._key_variable
        reaction = reaction_to(complaint, self.safe(complaint.message), sent, variable, has_key=has_key)
        return Failure(f"{self.name}: {self.safe(where + complaint.message)}", reaction, after_s)

    def safe(self, message: str) -> str:
        """A server's message without our key, fit for every file and short enough for a screen."""
        if self._key != PLACEHOLDER_KEY:
            message = message.replace(self._key, "[key]")
        return message.encode("utf-8", "backslashreplace").decode()[:500]
