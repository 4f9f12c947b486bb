"""Prompts that cannot fit a model's context, found before they are sent."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import anyio

from kernelproof.errors import ProviderError
from kernelproof.providers.body import text_of
from kernelproof.providers.protocol import Question, messages
from kernelproof.providers.server import ModelServer
from kernelproof.types import Prompt

if TYPE_CHECKING:
    import openai

BYTES_A_TOKEN = 3.6
"""Assumed of prompts like ours: English and Python."""
MOST_CHARACTERS_A_TOKEN = 5.4
"""No text like ours has more. Counted by the tokenizers of GPT-4o, Qwen and DeepSeek: 126 prompts of ours had
3.7 to 3.9 bytes a token, and 472 files of code and English at most 4.6."""
SHORTEST = 2048
"""A server is not asked how long its context is because of a prompt that may fit into so many tokens."""
LOOK_S = 10.0
"""A server that does not say it within so many seconds is taken not to say it."""
_FIELDS = ("max_model_len", "context_length", "context_window", "max_context_length", "n_ctx", "n_ctx_train")
"""In the order of trust: vLLM and SGLang; OpenRouter and Together; Groq; Mistral; llama.cpp, what it runs
with and what the model was trained with."""
_REPEATED = re.compile(r"(\W)\1+")


class ContextLength:
    """The tokens that one model's context holds, as far as the user or the server says it."""

    def __init__(self, model: str, user_limit: int | None, server: ModelServer) -> None:
        """`user_limit`: what the user says, which goes before what the server says."""
        self._model, self._user_limit, self._server = model, user_limit, server
        self._looking = anyio.Lock()
        self._looked = False
        self._server_says: int | None = None

    async def refuse_too_long(self, question: Question) -> None:
        """Raises ProviderError for a prompt that surely has more tokens than the context; none is sent.

        Where nobody says how long the context is, the server has to find out.
        """
        texts = _texts(question.prompt)
        limit = self._user_limit
        if limit is None and sum(map(len, texts)) >= MOST_CHARACTERS_A_TOKEN * SHORTEST:
            limit = await self._server_limit()
        if limit is None or not cannot_fit(question.prompt, limit):
            return
        about = round(sum(len(text.encode()) for text in texts) / BYTES_A_TOKEN)
        who = "--context-length" if self._user_limit else "the server's list of models"
        raise ProviderError(
            f"{self._server.name}: the prompt of about {about:,} tokens is longer than the model's context "
            f"of {limit:,} tokens ({who}), so it was not sent; use a model with a longer context or a "
            "shorter template, or correct the limit with --context-length N and ask again with "
            "--again provider",
            retriable=False,
            of_question=True,
        )

    async def _server_limit(self) -> int | None:
        async with self._looking:
            if not self._looked:
                await self._server.connections.ready()
                with anyio.move_on_after(LOOK_S), suppress(ProviderError):
                    self._server_says = await self._server.attempt(self._look, "the list of models")
                self._looked = True
        return self._server_says

    async def _look(self, client: openai.AsyncOpenAI) -> int | None:
        import openai

        answer = openai.AsyncStream[object]
        async with await client.get("/models", cast_to=object, stream=True, stream_cls=answer) as stream:
            return context_of(await text_of(stream.response.aiter_bytes()), self._model)


def cannot_fit(prompt: Prompt, limit: int) -> bool:
    """Whether a prompt surely fills a context of so many tokens, and leaves none for the answer."""
    texts = _texts(prompt)
    # Counting takes milliseconds, so it is left out where the length alone shows that the prompt may fit.
    if sum(map(len, texts)) < MOST_CHARACTERS_A_TOKEN * limit:
        return False
    return sum(map(fewest_tokens, texts)) >= limit


def _texts(prompt: Prompt) -> list[str]:
    return [message["content"] for message in messages(prompt)]


def fewest_tokens(text: str) -> int:
    """The least number of tokens that a text has. Signs and blanks that repeat themselves count once:
    tokenizers have tokens for long rows of them."""
    return int(len(_REPEATED.sub(r"\1", text)) / MOST_CHARACTERS_A_TOKEN)


def context_of(listing: str, model: str) -> int | None:
    """The context of a model by a server's list of models; None where that does not say it.

    A server with one model is taken to answer by it, whatever name it is asked for.
    """
    try:
        found: Any = json.loads(listing)
    except (ValueError, RecursionError):
        return None
    data = found.get("data") if isinstance(found, Mapping) else found
    entries = [entry for entry in data if isinstance(entry, Mapping)] if isinstance(data, list) else []
    named = [entry for entry in entries if entry.get("id") == model] or (entries if len(entries) == 1 else [])
    for entry in named:
        meta = entry.get("meta")
        fields = {**meta, **entry} if isinstance(meta, Mapping) else entry
        for name in _FIELDS:
            value = fields.get(name)
            if isinstance(value, int) and value > 1:
                return value
    return None
