"""One request to a server: what it came to, or what went wrong and what to do about it."""

from __future__ import annotations

import ssl
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

import anyio

from kernelproof.errors import ProviderError
from kernelproof.providers.base import ProviderOptions
from kernelproof.providers.complaints import AnswerError, Complaint
from kernelproof.providers.connections import CONNECT_S
from kernelproof.providers.server_errors import Verdict, judged
from kernelproof.providers.waiting import retry_after

T = TypeVar("T")

PLACEHOLDER_KEY = "no-key"
"""Sent to a server that needs none."""
TLS_ERRORS = (ssl.SSLError, anyio.EndOfStream, anyio.BrokenResourceError, anyio.ClosedResourceError)
"""Of the layers below httpx2, which does not translate all of them."""


@dataclass(frozen=True)
class Failure:
    """A request that got no answer."""

    error: ProviderError
    """A sentence for the user."""
    verdict: Verdict
    after_s: float | None = None
    """Wait so long, because the server said so."""


class Attempts:
    """Requests to the server of one model, with its errors in our words."""

    def __init__(self, name: str, key: str, options: ProviderOptions) -> None:
        """`key` is never shown."""
        self._name, self._key, self._options = name, key, options

    async def attempt(
        self, work: Callable[[], Awaitable[T]], what: str, sent: Mapping[str, object]
    ) -> T | Failure:
        """What `work` returns. `what` it is for is named in messages; `sent` are the fields of the request.

        Raises ProviderFatal where `work` does.
        """
        import httpx2
        import openai

        try:
            return await work()
        except openai.APIStatusError as error:
            return self._of_status(error, sent)
        except AnswerError as error:
            return self.judged(error.complaint, f"{self._name}: {self.safe(str(error))}", sent)
        except ProviderError as error:
            again = Verdict(retry=error.retriable, of_question=error.of_question)
            return Failure(error.again(f"{self._name}: {self.safe(str(error))}"), again)
        except (openai.APITimeoutError, httpx2.TimeoutException) as error:
            if isinstance(error.__cause__ or error, httpx2.ConnectTimeout):
                return self.passing(f"cannot be reached: no connection within {CONNECT_S:g} s")
            return self.passing(f"said nothing for {self._options.timeout_s:g} s (--timeout): {what}")
        except (openai.OpenAIError, httpx2.HTTPError, httpx2.StreamError, *TLS_ERRORS) as error:
            cause = error.__cause__ or error
            why = self.safe(str(cause)) or type(cause).__name__
            return self.passing(f"cannot be reached, or broke off: {why}")

    def judged(
        self, found: Complaint, message: str, sent: Mapping[str, object], after_s: float | None = None
    ) -> Failure:
        """What an error in the server's words means."""
        verdict = judged(found, self.safe(found.message), sent, self._options.key_variable)
        error = ProviderError(message, retriable=verdict.retry, of_question=verdict.of_question)
        return Failure(error, verdict, after_s)

    def passing(self, what: str) -> Failure:
        """A failure after which the same request may get an answer."""
        return Failure(ProviderError(f"{self._name} {what}"), Verdict(retry=True))

    def safe(self, message: str) -> str:
        """A server's message without our key, fit for every file and short enough for a screen."""
        if self._key != PLACEHOLDER_KEY:
            message = message.replace(self._key, "[key]")
        return message.encode("utf-8", "backslashreplace").decode()[:500]

    def _of_status(self, error: Any, sent: Mapping[str, object]) -> Failure:
        found = error.body
        assert isinstance(found, Complaint)
        message = f"{self._name}: {self.safe(found.message)}"
        return self.judged(found, message, sent, retry_after(error.response.headers))
