"""Requests to a model's server: each is answered, or fails in our words and may be made again.

The openai package could retry by itself, and does not here. It would not lower the limit of questions after
429, would give a busy server up after as few tries as a broken one, and sees neither an answer that breaks
off nor an error in a reply with status 200. Two loops would multiply their tries.
"""

from __future__ import annotations

import ssl
from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, TypeVar

import anyio

from kernelproof.errors import ProviderError, ProviderFatal
from kernelproof.providers.connections import CONNECT_S, Connections
from kernelproof.providers.pacing import backoff, retry_after
from kernelproof.providers.protocol import ProviderOptions
from kernelproof.providers.server_errors import AnswerError, Complaint, Verdict, judged

if TYPE_CHECKING:
    import openai

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

    def __init__(self, message: str, verdict: Verdict, after_s: float | None = None) -> None:
        """`after_s`: the server asks to wait so long."""
        super().__init__(message, retriable=verdict.retry, of_question=verdict.of_question)
        self.verdict, self.after_s = verdict, after_s


class ModelServer:
    """The server of one model. For one event loop."""

    def __init__(self, name: str, key: str, url: str | None, options: ProviderOptions) -> None:
        """`name` is the model's, for messages; `key` is never shown."""
        self.name, self.url = name, url
        self._key, self._options = key, options
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
                failure, verdict = error, error.verdict
            if verdict.fatal is not None:
                raise ProviderFatal(f"{self.name}: {verdict.fatal}") from failure
            pause_s = failure.after_s or backoff(busy if verdict.busy else tries)
            busy, tries = busy + verdict.busy, tries + (not verdict.busy)
            if not verdict.retry or tries > retries or busy > BUSY_TRIES:
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
            again = Verdict(retry=error.retriable, of_question=error.of_question)
            raise Failure(f"{self.name}: {self.safe(str(error))}", again) from error
        except (openai.APITimeoutError, httpx2.TimeoutException) as error:
            why = f"said nothing for {self._options.timeout_s:g} s (--timeout): {what}"
            if isinstance(error.__cause__ or error, httpx2.ConnectTimeout):
                why = f"cannot be reached: no connection within {CONNECT_S:g} s"
            raise Failure(f"{self.name} {why}", Verdict(retry=True)) from error
        except (openai.OpenAIError, httpx2.HTTPError, httpx2.StreamError, *TLS_ERRORS) as error:
            cause = error.__cause__ or error
            why = f"cannot be reached, or broke off: {self.safe(str(cause)) or type(cause).__name__}"
            raise Failure(f"{self.name} {why}", Verdict(retry=True)) from error

    def failure(
        self,
        complaint: Complaint,
        sent: Mapping[str, object],
        where: str = "",
        after_s: float | None = None,
    ) -> Failure:
        """What an error in the server's words means; `where` it stood, for the message."""
        verdict = judged(complaint, self.safe(complaint.message), sent, self._options.key_variable)
        return Failure(f"{self.name}: {self.safe(where + complaint.message)}", verdict, after_s)

    def safe(self, message: str) -> str:
        """A server's message without our key, fit for every file and short enough for a screen."""
        if self._key != PLACEHOLDER_KEY:
            message = message.replace(self._key, "[key]")
        return message.encode("utf-8", "backslashreplace").decode()[:500]
