"""What is asked and answered: prompts, responses, the plans in them, and the candidate."""

from __future__ import annotations

from typing import Any

from pydantic import Field

from kernelproof.hashing import sha256_json
from kernelproof.types.record import FrozenRecord
from kernelproof.types.status import Status

LIMITED = frozenset(
    {
        "length",
        "max_tokens",
        "max_output_tokens",
        "model_length",
        "model_context_window_exceeded",
        "repetition_truncation",
    }
)
"""Finish reasons that mean that the server cut the answer off, in lower case, as servers spell them: OpenAI,
Anthropic, Google, Mistral, vLLM, Zhipu."""
FILTERED = frozenset(
    {
        "content_filter",
        "safety",
        "prohibited_content",
        "blocklist",
        "recitation",
        "spii",
        "guardrail_intervened",
        "sensitive",
    }
)
"""Finish reasons that mean a filter of the server's: OpenAI, Google, Amazon, Zhipu."""
FAILED = frozenset({"abort", "error", "insufficient_system_resource", "network_error"})
"""Finish reasons that mean that the server failed and the answer is not whole: vLLM and SGLang, OpenRouter,
DeepSeek, Zhipu."""
REFUSED = frozenset({"refusal"})
"""Finish reasons that mean that the model declined: Anthropic."""


class Prompt(FrozenRecord):
    """A rendered prompt."""

    template: str
    """Template folder's name, with its version: `basic-v1`."""
    template_sha256: str
    """Hash over the template folder's files, so that an edited template is another template."""
    system: str
    user: str
    history: tuple[tuple[str, str], ...] = ()
    """Earlier turns of the conversation between system and user text, as (role, text), oldest first."""
    sha256: str

    @property
    def turns(self) -> tuple[tuple[str, str], ...]:
        """Role and text of each message, in the order in which they are sent."""
        return (("system", self.system), *self.history, ("user", self.user))


def prompt_sha256(system: str, history: tuple[tuple[str, str], ...], user: str) -> str:
    """The hash of a prompt: over its system, history and user text."""
    return sha256_json({"system": system, "history": history, "user": user})


class Usage(FrozenRecord):
    """Token counts as the server reported them; None where it said nothing (never 0 for unknown)."""

    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    """Includes reasoning tokens."""
    reasoning_tokens: int | None = None
    cached_tokens: int | None = None


class Response(FrozenRecord):
    """Everything the server said, stored before anything is parsed."""

    text: str | None
    """The answer's content, raw; None when the server sent none."""
    reasoning: str | None = None
    """The separate reasoning field, when the server has one."""
    refusal: str | None = None
    finish_reason: str | None = None
    """`stop`, `length`, `content_filter` ... as the server spelled it. `max_output_tokens` also where the
    server spoke of an answer as completed that took all the tokens it was allowed."""
    usage: Usage | None = None
    request_id: str | None = None
    served_model: str | None = None
    """The model name in the response, which may differ from the one asked for."""
    system_fingerprint: str | None = None
    latency_s: float | None = None
    """Seconds from sending the question to the end of the answer."""
    cost_usd: float | None = None
    """What the answer cost, in US dollars, where the server said so; None: it did not (never 0)."""
    raw: dict[str, Any] = Field(default_factory=dict)
    """The server's whole JSON body; `{"file": NAME}` for a candidate that was verified from a file."""


class Plan(FrozenRecord):
    """One of the plans in a model's answer. Its words are the model's."""

    title: str
    text: str
    """What it says beside its title; may be empty."""


class Candidate(FrozenRecord):
    """The source of one candidate."""

    source: str
    sha256: str
    """SHA-256 of `source`."""


class Extraction(FrozenRecord):
    """The result of looking for a candidate in a response. Never a raised error: either code or a status."""

    candidate: Candidate | None
    """The program found, or None."""
    status: Status | None = None
    """Why there is none: refused, filtered, truncated, empty or no_code. None when a candidate was found."""
    reason: str = ""
    """The same in words, the server's own among them: its refusal, its finish reason. Empty when a candidate
    was found, and in what earlier versions stored."""
    method: str
    """How it was found: `whole` (the text is the program), `fence`, `lenient_fence`, `bare` or `json`; `diff`
    (changes of the program that the question showed); `none` when there is none.
    Earlier versions said `file` for `whole`."""
    warnings: tuple[str, ...] = ()
    """What was odd about the response: `unclosed_fence` ...; docs/rationale/extraction.md lists them."""
    span: tuple[int, int] | None = None
    """Start and end character of the code in the response's text, before normalisation, where known."""

    @property
    def why_none(self) -> Status:
        """The status of an attempt whose answer holds no candidate."""
        return self.status or Status.NO_CODE
