"""Where answers come from: any OpenAI-compatible server, or a recording. One protocol, a class a file.

Begin with `protocol`: what a provider is, and the question that it is asked. `openai_api` is the one for
servers: `endpoints` shapes requests and streamed answers, `server` sends them, `pacing` says how many and
when again, `server_errors` what a failure means, `body` reads replies; `server_batches` uses
a server's batch interface. `recording` writes answers down and replays them.
"""

from __future__ import annotations

from kernelproof.errors import UsageError
from kernelproof.providers.body import cut_by, cut_hint, response_from_body
from kernelproof.providers.protocol import (
    PROVIDERS,
    AskEvent,
    BatchJournal,
    KeepsBatches,
    OnAsk,
    OpenBatch,
    Provider,
    ProviderOptions,
    Question,
    messages,
    provider,
)
from kernelproof.providers.recording import RecordingProvider, RecordKey, ReplayProvider

__all__ = [
    "AskEvent",
    "BatchJournal",
    "KeepsBatches",
    "OnAsk",
    "OpenBatch",
    "Provider",
    "ProviderOptions",
    "Question",
    "RecordKey",
    "RecordingProvider",
    "ReplayProvider",
    "cut_by",
    "cut_hint",
    "messages",
    "open_provider",
    "provider",
    "response_from_body",
]


def open_provider(spec: str, options: ProviderOptions | None = None) -> Provider:
    """The provider that `spec`, `KIND:REST`, names: `openai:MODEL`, `replay:FILE`, `replay:demo`, or one of
    another package.

    Raises UsageError for a spec or options that make no sense, ProviderFatal when a key is missing.
    """
    kind, _, rest = spec.partition(":")
    if not kind or not rest.strip():
        meant = (
            f"did you mean openai:{kind}? or " if kind and kind not in PROVIDERS and ":" not in spec else ""
        )
        raise UsageError(f"no model {spec!r}; {meant}{_forms()}")
    if kind not in PROVIDERS:
        raise UsageError(f"no model {spec!r}, because no provider is called {kind!r}; {_forms()}")
    return PROVIDERS.find(kind)(rest, options or ProviderOptions())


def _forms() -> str:
    others = sorted(set(PROVIDERS.names()) - {"openai", "replay"})
    also = f"; there are also {', '.join(f'{name}:...' for name in others)}" if others else ""
    return f"write openai:MODEL, replay:FILE or replay:demo{also}"
