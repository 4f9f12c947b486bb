"""Where answers come from: any Chat Completions server, or a recording. One protocol, a class a file."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pipeline.errors import UsageError
from pipeline.providers.base import Provider, ProviderOptions, Question, messages
from pipeline.providers.body import response_from_body
from pipeline.providers.recording import RecordingProvider, RecordKey
from pipeline.providers.registry import PROVIDERS, provider
from pipeline.providers.replay import ReplayProvider

__all__ = [
    "Provider",
    "ProviderOptions",
    "Question",
    "RecordKey",
    "RecordingProvider",
    "ReplayProvider",
    "messages",
    "open_provider",
    "provider",
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
    """The provider that `spec`, `KIND:REST`, names: `openai:MODEL`, `replay:FILE`, `replay:demo`, or one of
    another package.

    `sampling` holds the fields of the request that the user set (`temperature`, `max_completion_tokens` ...);
    a value None means unset. `timeout_s` bounds each wait, in seconds. Raises UsageError for a spec or
    settings that make no sense, ProviderFatal when a key is missing.
    """
    kind, _, rest = spec.partition(":")
    if not kind or not rest.strip():
        raise UsageError(f"no model {spec!r}; {_forms()}")
    if kind not in PROVIDERS:
        raise UsageError(f"no model {spec!r}, because no provider is called {kind!r}; {_forms()}")
    given = {name: value for name, value in (sampling or {}).items() if value is not None}
    options = ProviderOptions(base_url, given, timeout_s, max_retries)
    return PROVIDERS.find(kind)(rest, options)


def _forms() -> str:
    """What can be written instead."""
    others = sorted(set(PROVIDERS.names()) - {"openai", "replay"})
    also = f"; there are also {', '.join(f'{name}:...' for name in others)}" if others else ""
    return f"write openai:MODEL, replay:FILE or replay:demo{also}"
