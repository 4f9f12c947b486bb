"""Where answers come from: any Chat Completions server, or a recording. One protocol."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pipeline.errors import UsageError
from pipeline.providers.base import Provider, Question, messages
from pipeline.providers.body import response_from_body
from pipeline.providers.recording import RecordingProvider, RecordKey
from pipeline.providers.replay import ReplayProvider

__all__ = [
    "Provider",
    "Question",
    "RecordKey",
    "RecordingProvider",
    "ReplayProvider",
    "messages",
    "open_provider",
    "response_from_body",
]


def open_provider(
    spec: str,
    *,
    base_url: str | None = None,
    sampling: Mapping[str, Any] | None = None,
    timeout_s: float = 600.0,
    max_retries: int = 2,
) -> Provider:
    """The provider that `spec` names: `openai:MODEL`, `replay:FILE`, or `replay:demo`.

    The rest is for `openai:` only. `sampling` holds the fields of the request that the user set
    (`temperature`, `max_completion_tokens` ...); `timeout_s` bounds each wait, in seconds. Raises UsageError
    for a spec or settings that make no sense, ProviderFatal when a key is missing.
    """
    kind, _, rest = spec.partition(":")
    if kind not in ("openai", "replay") or not rest.strip():
        raise UsageError(f"no model {spec!r}; write openai:MODEL, replay:FILE or replay:demo")
    if kind == "openai":
        from pipeline.providers.openai_chat import OpenAIProvider

        return OpenAIProvider(
            rest, base_url=base_url, sampling=sampling, timeout_s=timeout_s, max_retries=max_retries
        )
    if base_url is not None or any(value is not None for value in (sampling or {}).values()):
        raise UsageError(
            f"{spec} plays recorded answers: a base URL and sampling settings have no effect on it"
        )
    return ReplayProvider(rest)
