"""Any server that speaks Chat Completions or Responses, through the openai package.

The package is imported only when a question is asked.
"""

from __future__ import annotations

import json
import os
import time
from functools import partial
from typing import TYPE_CHECKING, Any

import anyio

from kernelproof.errors import ProviderError, ProviderFatal, UsageError
from kernelproof.providers.body import (
    bounded,
    events,
    json_object,
    looks_streamed,
    response_from_body,
    text_of,
    with_limit,
)
from kernelproof.providers.context import ContextLength
from kernelproof.providers.endpoints import ENDPOINTS
from kernelproof.providers.pacing import AdaptiveLimit
from kernelproof.providers.protocol import (
    AskEvent,
    BatchJournal,
    Provider,
    ProviderOptions,
    Question,
    messages,
    provider,
)
from kernelproof.providers.server import (
    PLACEHOLDER_KEY,
    TLS_ERRORS,
    Failure,
    ModelServer,
    allow_connections,
    checked_url,
)
from kernelproof.providers.server_batches import BatchServer, ServerBatches
from kernelproof.types import Response
from kernelproof.wording import counted

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    import httpx2
    import openai

BASE_URL_VARIABLE = "OPENAI_BASE_URL"
SILENCES = 20
"""An answer without a token for so many times the longest silence is given up, though bytes come."""
TELL_S = 0.3
"""The fewest seconds between two reports of tokens to a listener."""
DRAIN_S = 2.0
"""The seconds in which a connection must end after its last event, to be used again."""


@provider("openai")
class OpenAIProvider(Provider):
    """A model behind an endpoint of OpenAI's kind.

    An answer that breaks off, a connection that fails, 408, 409 and 5xx are tried `max_retries` times more,
    with growing waits. A server that is busy (429) is asked less often from then on. Presets of other servers
    inherit from this class and change the attributes below.
    """

    _kind = "openai"
    _default_url: str | None = None
    """None: the openai package's own."""
    _url_variable: str | None = BASE_URL_VARIABLE
    """The environment variable with a base URL, which goes before the default."""
    _default_key_variable = "OPENAI_API_KEY"
    _needs_key = True
    """Whether the server at the default URL takes no question without a key."""

    def __init__(self, model: str, options: ProviderOptions) -> None:
        """Raises UsageError for a field that is not the user's to set, a base URL that is none, or more
        connections than the system allows; ProviderFatal when a key is needed and none is there.
        """
        self._model, self._sampling, self._options = model, dict(options.sampling), options
        self._endpoint = ENDPOINTS[options.endpoint]
        if taken := sorted(self._endpoint.ours & self._sampling.keys()):
            raise UsageError(f"sampling settings cannot hold {', '.join(taken)}; samples are separate calls")
        try:
            json.dumps(self._sampling, allow_nan=False)
        except (ValueError, TypeError) as error:
            raise UsageError(f"a sampling setting cannot be sent as JSON: {error}") from error
        variable = self._url_variable
        url = options.base_url or (os.environ.get(variable) if variable else None) or None
        own_server = url is not None or not self._needs_key
        url = checked_url(url) if url else self._default_url
        key_variable = options.key_variable or self._default_key_variable
        key = _key(self.name, key_variable, own_server)
        self._stream = options.stream and not options.server_batch
        self._with_usage = bool(self._endpoint.usage_field)
        allow_connections(1 if options.server_batch else options.concurrency)
        self._limit = AdaptiveLimit(options.concurrency)
        self._server = ModelServer(self.name, key, key_variable, url, options)
        self._context = ContextLength(model, options.context_length, self._server)
        self._batches: ServerBatches | None = None
        if options.server_batch:
            batches = BatchServer(self._server, options.max_retries)
            self._batches = ServerBatches(options, batches, self._request)

    @property
    def name(self) -> str:
        """`openai:MODEL`."""
        return f"{self._kind}:{self._model}"

    async def ask(self, question: Question) -> Response:
        """The server's answer; see `Provider.ask` for the errors."""
        await self._context.refuse_too_long(question)
        if self._batches is not None:
            return await self._batches.ask(question)
        taken = 0.0

        async def attempt() -> Response:
            nonlocal taken
            if self._limit.is_full:
                places = f"{self._limit.allowed} of {self._limit.most} questions at once"
                question.tell(AskEvent("waiting", note=f"the server is busy: {places}"))
            async with self._limit.place() as taken:
                question.tell(AskEvent("sent"))
                answer = await self._answer(question)
                self._limit.answered()
                return answer

        def wait(failure: Failure, pause_s: float) -> None:
            if failure.reaction.busy:
                self._limit.busy(taken, pause_s)
            question.tell(AskEvent("waiting", note=f"again in {pause_s:.1f} s: {failure}"))

        try:
            return await self._server.insist(attempt, self._options.max_retries, wait)
        except Failure as failure:
            hint = _too_long_perhaps(question) if failure.reaction.unexplained else ""
            raise failure.again(f"{failure}{hint}") from failure

    def keep_batches(self, journal: BatchJournal) -> None:
        """Batches at the server are written down there, and found there."""
        if self._batches is not None:
            self._batches.keep_batches(journal)

    async def aclose(self) -> None:
        if self._batches is not None:
            self._batches.close()
        await self._server.connections.aclose()

    async def _answer(self, question: Question) -> Response:
        """The answer to one request, or to a second one without what this class added and the server refuses;
        it is left out from then on. Raises as `ModelServer.attempt` does.
        """
        while True:
            sent = self._request(question)
            try:
                work = partial(self._sent, question, sent)
                return await self._server.attempt(work, str(question), sent)
            except Failure as failure:
                refused = failure.reaction.parameter
                if refused not in ("stream", "stream_options") or not sent[refused]:
                    raise
                self._stream = self._stream and refused != "stream"
                self._with_usage = self._with_usage and refused != "stream_options"

    def _request(self, question: Question) -> dict[str, Any]:
        sent = self._endpoint.request(self._model, question.prompt, self._sampling)
        if self._stream:
            sent["stream"] = True
            if self._with_usage:
                sent |= self._endpoint.usage_field
        return sent

    async def _sent(self, question: Question, sent: dict[str, Any], client: openai.AsyncOpenAI) -> Response:
        """Sends the request and reads the reply, as it comes or whole."""
        import openai

        headers = {"Idempotency-Key": question.key} if question.key else {}
        started = time.monotonic()
        patience_s = SILENCES * self._options.timeout_s
        with anyio.move_on_after(patience_s) as patience:
            # The package's types of questions and answers are not used: servers take and send what they like,
            # and walking through a long conversation by its types takes milliseconds.
            async with await client.post(
                self._endpoint.path.removeprefix("/v1"),
                body=sent,
                options={"headers": headers},
                cast_to=object,
                stream=True,
                stream_cls=openai.AsyncStream[object],
            ) as stream:
                body = await self._body(question, stream.response, patience)
                request_id = stream.response.headers.get("x-request-id")
            found = response_from_body(body, request_id=request_id, latency=time.monotonic() - started)
            return with_limit(found, sent)
        raise ProviderError(f"sent no token for {patience_s:g} s, though it kept the connection open")

    async def _body(
        self, question: Question, reply: httpx2.Response, patience: anyio.CancelScope
    ) -> dict[str, Any]:
        if "event-stream" in reply.headers.get("content-type", ""):
            return await self._streamed(question, bounded(reply.aiter_bytes()), patience)
        text = await text_of(reply.aiter_bytes())
        if looks_streamed(text):
            return await self._streamed(question, _one(text), patience)
        return json_object(text, "the server's answer")

    async def _streamed(
        self, question: Question, pieces: AsyncIterator[bytes], patience: anyio.CancelScope
    ) -> dict[str, Any]:
        """The whole body. Tells how far it is. Each token gives the server its whole time anew."""
        import httpx2

        assembler = self._endpoint.assembler()
        told = 0.0
        try:
            async for event in events(pieces):
                if event is None:
                    assembler.done = True
                else:
                    before = assembler.tokens
                    assembler.add(event)
                    now = time.monotonic()
                    if assembler.tokens > before and now - told >= TELL_S:
                        told = now
                        patience.deadline = anyio.current_time() + SILENCES * self._options.timeout_s
                        question.tell(AskEvent("streaming", assembler.tokens))
                if assembler.done:
                    break
            with anyio.move_on_after(DRAIN_S):
                async for _ in pieces:
                    pass
        except (httpx2.TransportError, *TLS_ERRORS):
            if assembler.body() is None:
                raise
            # All was said, and is paid for; only the end of the connection is missing.
        body = assembler.body()
        if body is None:
            raise ProviderError(f"the answer broke off after {counted(assembler.tokens, 'token')}")
        return body


class _Preset(OpenAIProvider):
    """`--base-url` still names another server; `OPENAI_BASE_URL` is for `openai:` alone."""

    _url_variable = None


@provider("openrouter")
class OpenRouter(_Preset):
    """A model at openrouter.ai."""

    _kind = "openrouter"
    _default_url = "https://openrouter.ai/api/v1"
    _default_key_variable = "OPENROUTER_API_KEY"


@provider("anthropic")
class Anthropic(_Preset):
    """A model of Anthropic, by its endpoint for OpenAI's clients."""

    _kind = "anthropic"
    _default_url = "https://api.anthropic.com/v1/"
    _default_key_variable = "ANTHROPIC_API_KEY"


@provider("ollama")
class Ollama(_Preset):
    """A model of the Ollama server on this machine. A key is sent only where one is set."""

    _kind = "ollama"
    _default_url = "http://localhost:11434/v1"
    _default_key_variable = "OLLAMA_API_KEY"
    _needs_key = False


def _too_long_perhaps(question: Question) -> str:
    """Some servers do not say when a prompt is longer than the model's context: they fail."""
    size = sum(len(message["content"]) for message in messages(question.prompt))
    return f"; perhaps the prompt of {size} characters is longer than the model's context"


async def _one(text: str) -> AsyncIterator[bytes]:
    yield text.encode()


def _key(name: str, variable: str, own_server: bool) -> str:
    """The key to send; a server of one's own needs none. Raises ProviderFatal where it is missing, or unfit
    to be sent."""
    key = os.environ.get(variable, "").strip() or (PLACEHOLDER_KEY if own_server else "")
    if not key:
        raise ProviderFatal(
            f"{name} needs a key in {variable}; for a server of your own give its "
            "base URL (--base-url), for another variable its name (--key-variable)"
        )
    if not key.isascii() or not key.isprintable() or " " in key:
        raise ProviderFatal(f"the key in {variable} holds characters that no key can have")
    return key
