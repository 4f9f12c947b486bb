"""Any server that speaks Chat Completions or Responses, through the openai package.

The package is imported only when a question is asked.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import anyio
import anyio.lowlevel

from kernelproof.errors import ProviderError, ProviderFatal, UsageError
from kernelproof.providers.adaptive_limit import AdaptiveLimit
from kernelproof.providers.assembling import Assembler
from kernelproof.providers.attempts import PLACEHOLDER_KEY, TLS_ERRORS, Attempts, Failure
from kernelproof.providers.base import AskEvent, BatchJournal, ProviderOptions, Question, messages
from kernelproof.providers.batch_server import BatchServer
from kernelproof.providers.body import response_from_body, with_limit
from kernelproof.providers.connections import Connections, allow_connections, checked_url
from kernelproof.providers.context import ContextLength
from kernelproof.providers.endpoints import endpoint
from kernelproof.providers.registry import provider
from kernelproof.providers.server_batches import ServerBatches
from kernelproof.providers.server_errors import Verdict
from kernelproof.providers.sse import bounded, events, json_object, lines, looks_streamed
from kernelproof.providers.waiting import backoff
from kernelproof.types import Response
from kernelproof.wording import counted

if TYPE_CHECKING:
    from openai._response import AsyncAPIResponse

BASE_URL_VARIABLE = "OPENAI_BASE_URL"
BUSY_TRIES = 20
"""The number of times that a question is sent again because the server is busy (429), beside the other
retries."""
SILENCES = 20
"""An answer without a token for so many times the longest silence is given up, though bytes come."""
TELL_S = 0.3
"""The fewest seconds between two reports of tokens to a listener."""
STARTS = 8
"""The number of questions that are sent in one turn of the event loop."""
DRAIN_S = 2.0
"""The seconds in which a connection must end after its last event, to be used again."""


@provider("openai")
class OpenAIProvider:
    """A model behind an endpoint of OpenAI's kind.

    It alone asks again: the client's own retries are off. An answer that breaks off, a connection that fails,
    408, 409 and 5xx are tried `max_retries` times more, with growing waits. A server that is busy (429) is
    asked less often from then on.
    """

    def __init__(self, model: str, options: ProviderOptions) -> None:
        """Raises UsageError for a field that is not the user's to set, a base URL that is none, or more
        connections than the system allows; ProviderFatal when a key is needed and none is there.
        """
        self._model, self._sampling, self._options = model, dict(options.sampling), options
        self._endpoint = endpoint(options.endpoint)
        if taken := sorted(self._endpoint.ours & self._sampling.keys()):
            raise UsageError(f"sampling settings cannot hold {', '.join(taken)}; samples are separate calls")
        try:
            json.dumps(self._sampling, allow_nan=False)
        except (ValueError, TypeError) as error:
            raise UsageError(f"a sampling setting cannot be sent as JSON: {error}") from error
        url = options.base_url or os.environ.get(BASE_URL_VARIABLE) or None
        self._key = _key(model, options, None if url is None else checked_url(url))
        self._connections = Connections(self._key, url, options.timeout_s)
        self._stream = options.stream and not options.server_batch
        self._with_usage = bool(self._endpoint.usage_field)
        allow_connections(1 if options.server_batch else options.concurrency)
        self._limit = AdaptiveLimit(options.concurrency)
        self._door = anyio.Semaphore(STARTS)
        self._attempts = Attempts(self.name, self._key, options)
        self._context = ContextLength(
            self.name, model, options.context_length, self._attempts, self._connections
        )
        self._batches: ServerBatches | None = None
        if options.server_batch:
            server = BatchServer(self.name, options.max_retries, self._attempts, self._connections)
            self._batches = ServerBatches(self.name, url, options, server, self._request)

    @property
    def name(self) -> str:
        """`openai:MODEL`."""
        return f"openai:{self._model}"

    async def ask(self, question: Question) -> Response:
        """The server's answer; see `Provider.ask` for the errors."""
        await self._context.refuse_too_long(question)
        if self._batches is not None:
            return await self._batches.ask(question)
        await self._connections.ready()
        tries = busy = 0
        while True:
            if self._limit.is_full:
                places = f"{self._limit.allowed} of {self._limit.most} questions at once"
                question.tell(AskEvent("waiting", note=f"the server is busy: {places}"))
            async with self._limit.place() as taken:
                await self._in_turn()
                question.tell(AskEvent("sent"))
                outcome = await self._try(question)
                if isinstance(outcome, Response):
                    self._limit.answered()
                    return outcome
                verdict = outcome.verdict
                if verdict.mended:
                    continue
                if verdict.fatal is not None:
                    raise ProviderFatal(f"{self.name}: {verdict.fatal}") from outcome.error
                pause = outcome.after_s or backoff(busy if verdict.busy else tries)
                if verdict.busy:
                    self._limit.busy(taken, pause)
            busy, tries = busy + verdict.busy, tries + (not verdict.busy)
            if not verdict.retry or tries > self._options.max_retries or busy > BUSY_TRIES:
                hint = _too_long_perhaps(question) if verdict.unexplained else ""
                raise outcome.error.again(f"{outcome.error}{hint}") from outcome.error
            question.tell(AskEvent("waiting", note=f"again in {pause:.1f} s: {outcome.error}"))
            await anyio.sleep(pause)

    def turns(self, problem_id: str, backend: str, sample: int) -> int | None:
        """No limit: a server answers as often as it is asked."""
        return None

    def keep_batches(self, journal: BatchJournal) -> None:
        """Batches at the server are written down there, and found there."""
        if self._batches is not None:
            self._batches.keep_batches(journal)

    async def aclose(self) -> None:
        """Close the connections."""
        if self._batches is not None:
            self._batches.close()
        await self._connections.aclose()

    async def _in_turn(self) -> None:
        """Few questions are sent in one turn of the event loop: to make a request takes milliseconds, and two
        thousand in one turn would stop everything else for seconds.
        """
        async with self._door:
            await anyio.lowlevel.checkpoint()

    async def _try(self, question: Question) -> Response | Failure:
        """The answer to one request; else what went wrong, and what to do about it."""
        sent = self._request(question)
        patience_s = SILENCES * self._options.timeout_s

        async def work() -> Response | None:
            with anyio.move_on_after(patience_s) as patience:
                return await self._answer(question, sent, patience)
            return None

        outcome = await self._attempts.attempt(work, str(question), sent)
        if outcome is None:
            why = f"sent no token for {patience_s:g} s, though it kept the connection open"
            return self._attempts.passing(why)
        return self._mended(outcome, sent) if isinstance(outcome, Failure) else outcome

    def _mended(self, failure: Failure, sent: dict[str, Any]) -> Failure:
        """What this class adds to a request is left out from now on, where it is refused."""
        refused = failure.verdict.parameter
        if refused not in ("stream", "stream_options") or not sent[refused]:
            return failure
        self._stream = self._stream and refused != "stream"
        self._with_usage = self._with_usage and refused != "stream_options"
        return replace(failure, verdict=Verdict(retry=True, mended=True))

    def _request(self, question: Question) -> dict[str, Any]:
        sent = self._endpoint.request(self._model, question.prompt, self._sampling)
        if self._stream:
            sent["stream"] = True
            if self._with_usage:
                sent |= self._endpoint.usage_field
        return sent

    async def _answer(
        self, question: Question, sent: dict[str, Any], patience: anyio.CancelScope
    ) -> Response:
        """Sends the request and reads the reply, as it comes or whole."""
        headers = {"Idempotency-Key": question.key} if question.key else {}
        started = time.monotonic()
        with self._connections.client() as client:
            async with self._endpoint.send(client, sent, headers) as reply:
                body = await self._body(question, reply, patience)
                request_id = reply.headers.get("x-request-id")
        found = response_from_body(body, request_id=request_id, latency=time.monotonic() - started)
        return with_limit(found, sent)

    async def _body(
        self, question: Question, reply: AsyncAPIResponse[Any], patience: anyio.CancelScope
    ) -> dict[str, Any]:
        assembler = self._endpoint.assembler()
        pieces = bounded(reply.iter_bytes())
        if "event-stream" in reply.headers.get("content-type", ""):
            return await self._streamed(question, lines(pieces), assembler, patience)
        whole = bytearray()
        async for piece in pieces:
            whole += piece
        text = whole.decode("utf-8", "replace")
        if looks_streamed(text):
            return await self._streamed(question, lines(_one(whole)), assembler, patience)
        return json_object(text, "the server's answer")

    async def _streamed(
        self,
        question: Question,
        found: AsyncIterator[str],
        assembler: Assembler,
        patience: anyio.CancelScope,
    ) -> dict[str, Any]:
        """The whole body. Tells how far it is. Each token gives the server its whole time anew."""
        import httpx2

        told = 0.0
        try:
            async for event in events(found):
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
                async for _ in found:
                    pass
        except (httpx2.TransportError, *TLS_ERRORS):
            if assembler.body() is None:
                raise
            # All was said, and is paid for; only the end of the connection is missing.
        body = assembler.body()
        if body is None:
            raise ProviderError(f"the answer broke off after {counted(assembler.tokens, 'token')}")
        return body


def _too_long_perhaps(question: Question) -> str:
    """Some servers do not say when a prompt is longer than the model's context: they fail."""
    size = sum(len(message["content"]) for message in messages(question.prompt))
    return f"; perhaps the prompt of {size} characters is longer than the model's context"


async def _one(piece: bytes | bytearray) -> AsyncIterator[bytes]:
    yield bytes(piece)


def _key(model: str, options: ProviderOptions, url: str | None) -> str:
    """The key to send; a server of one's own needs none. Raises ProviderFatal where it is missing, or unfit
    to be sent."""
    key = os.environ.get(options.key_variable, "").strip() or (PLACEHOLDER_KEY if url else "")
    if not key:
        raise ProviderFatal(
            f"openai:{model} needs a key in {options.key_variable}; for a server of your own give its "
            "base URL (--base-url), for another variable its name (--key-variable)"
        )
    if not key.isascii() or not key.isprintable() or " " in key:
        raise ProviderFatal(f"the key in {options.key_variable} holds characters that no key can have")
    return key
