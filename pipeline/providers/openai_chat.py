"""Any server that speaks Chat Completions, through the openai package (imported only when one is opened)."""

from __future__ import annotations

import json
import os
import re
import time
from typing import TYPE_CHECKING, Any

import anyio

from pipeline.errors import ProviderError, ProviderFatal, UsageError
from pipeline.providers.base import ProviderOptions, Question, messages
from pipeline.providers.body import response_from_body
from pipeline.providers.registry import provider
from pipeline.types import Response

if TYPE_CHECKING:
    import openai

KEY_VARIABLE = "OPENAI_API_KEY"
BASE_URL_VARIABLE = "OPENAI_BASE_URL"
PLACEHOLDER_KEY = "no-key"
MAX_RETRY_AFTER_S = 120.0
"""The longest Retry-After the openai client obeys."""
OURS = frozenset({"model", "messages", "stream", "stream_options", "n"})
"""Fields of the request that the user may not set: a sample is one call with one answer."""
_QUOTA_CODES = frozenset({"insufficient_quota", "billing_hard_limit_reached"})
_FATAL_HINTS = {
    401: f"check the key in {KEY_VARIABLE}",
    402: "the account needs credit",
    403: "the key may not use this model or server",
    404: "check the model's name and the base URL (most servers' end in /v1)",
}
_INSTEAD = {"max_tokens": "max_completion_tokens", "max_completion_tokens": "max_tokens"}


@provider("openai")
class OpenAIProvider:
    """A model behind a Chat Completions endpoint.

    The client itself retries connection errors, 408, 409, 429 and 5xx `max_retries` times and obeys
    Retry-After; nothing above it retries again.
    """

    def __init__(self, model: str, options: ProviderOptions) -> None:
        """Raises UsageError for a field that is not the user's to set or a base URL that is none,
        ProviderFatal when a key is needed and none is there.
        """
        self._model, self._sampling = model, options.sampling
        if taken := sorted(OURS & self._sampling.keys()):
            raise UsageError(f"sampling settings cannot hold {', '.join(taken)}; samples are separate calls")
        url = options.base_url or os.environ.get(BASE_URL_VARIABLE) or None
        if url is not None and not re.match(r"https?://[^/\s]", url):
            raise UsageError(f"base URL {url!r} must start with http:// or https:// and name a server")
        self._key = os.environ.get(KEY_VARIABLE) or (PLACEHOLDER_KEY if url else "")
        if not self._key:
            raise ProviderFatal(
                f"openai:{model} needs a key in {KEY_VARIABLE}; for a server of your own give its base URL"
            )
        # A server that sends a byte now and then outlives every timeout of the client; connecting and
        # reading may take timeout_s each. A question that needs more than all tries together is stuck.
        retries, wait_s = options.max_retries, options.timeout_s
        self._deadline_s = (retries + 1) * 2 * wait_s + retries * MAX_RETRY_AFTER_S
        self._client = _client(self._key, url, wait_s, retries)

    @property
    def name(self) -> str:
        """`openai:MODEL`."""
        return f"openai:{self._model}"

    async def ask(self, question: Question) -> Response:
        """The server's answer; see `Provider.ask` for the errors."""
        import openai

        started = time.monotonic()
        try:
            with anyio.fail_after(self._deadline_s):
                reply = await self._client.chat.completions.with_raw_response.create(
                    model=self._model,
                    messages=messages(question.prompt),  # type: ignore[arg-type]
                    extra_body=dict(self._sampling),
                )
        except openai.APIStatusError as error:
            raise self._judged(error) from error
        except openai.APITimeoutError as error:
            raise ProviderError(f"{self.name} did not answer in time: {question}") from error
        except openai.APIConnectionError as error:
            cause = error.__cause__ or error
            raise ProviderError(
                f"{self.name} cannot be reached: {self._safe(str(cause) or 'no reason given')}"
            ) from error
        except TimeoutError as error:
            raise ProviderError(
                f"{self.name} kept the connection open without finishing: {question}"
            ) from error
        return response_from_body(
            _json_object(reply.text), request_id=reply.request_id, latency=time.monotonic() - started
        )

    def turns(self, problem_id: str, backend: str, sample: int) -> int | None:
        """No limit: a server answers as often as it is asked."""
        return None

    async def aclose(self) -> None:
        """Close the connections."""
        await self._client.close()

    def _judged(self, error: openai.APIStatusError) -> ProviderError | ProviderFatal:
        """What an HTTP error means for the run."""
        message = self._safe(error.message)
        if _QUOTA_CODES & {error.code, error.type}:
            return ProviderFatal(f"{self.name}: the quota is used up: {message}")
        if error.status_code in _FATAL_HINTS:
            return ProviderFatal(f"{self.name}: {message}; {_FATAL_HINTS[error.status_code]}")
        refused = re.split(r"[.\[]", error.param or "", maxsplit=1)[0]
        if error.status_code in (400, 422) and refused in self._sampling:
            instead = f" or use {_INSTEAD[refused]} instead" if refused in _INSTEAD else ""
            return ProviderFatal(
                f"{self.name} does not accept the sampling setting {refused}: drop it{instead}. {message}"
            )
        if error.status_code in (400, 422) and refused == "model":
            return ProviderFatal(f"{self.name}: {message}; {_FATAL_HINTS[404]}")
        retriable = error.status_code in (408, 409, 429) or error.status_code >= 500
        return ProviderError(f"{self.name}: {message}", retriable=retriable)

    def _safe(self, message: str) -> str:
        """A server's message without our key, short enough for a screen."""
        return message.replace(self._key, "[key]")[:500]


def _client(key: str, url: str | None, timeout_s: float, max_retries: int) -> openai.AsyncOpenAI:
    import openai

    return openai.AsyncOpenAI(
        api_key=key,
        base_url=url,
        timeout=openai.Timeout(timeout_s, connect=min(10.0, timeout_s)),
        max_retries=max_retries,
    )


def _json_object(text: str) -> dict[str, Any]:
    """The body as a JSON object; any other body is the server's failure."""
    try:
        body = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ProviderError(f"the server's answer is not JSON: {text[:200]!r}") from error
    if not isinstance(body, dict):
        raise ProviderError(f"the server's answer is not a JSON object: {text[:200]!r}")
    return body
