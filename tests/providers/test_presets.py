"""Presets of servers: address, key and name of each, against a server on loopback."""

from __future__ import annotations

import anyio
import pytest

from kernelproof.errors import ProviderFatal, UsageError
from kernelproof.providers import ProviderOptions, open_provider
from kernelproof.providers.protocol import PROVIDERS
from tests.providers.questions import question
from tests.providers.server import Server, Step, completion, failure, serve

PRESETS = {
    "openrouter": ("https://openrouter.ai/api/v1", "OPENROUTER_API_KEY"),
    "anthropic": ("https://api.anthropic.com/v1/", "ANTHROPIC_API_KEY"),
    "ollama": ("http://localhost:11434/v1", "OLLAMA_API_KEY"),
}
KEYED = [kind for kind in PRESETS if kind != "ollama"]


@pytest.fixture(autouse=True)
def _no_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL", *(variable for _, variable in PRESETS.values())):
        monkeypatch.delenv(name, raising=False)


def ask(spec: str, options: ProviderOptions | None = None) -> str:
    async def asked() -> str:
        provider = open_provider(spec, options)
        try:
            return str((await provider.ask(question())).text)
        finally:
            await provider.aclose()

    return anyio.run(asked)


def at(monkeypatch: pytest.MonkeyPatch, kind: str, server: Server) -> None:
    """Has the preset's own server be one on loopback."""
    monkeypatch.setattr(PROVIDERS.find(kind), "_default_url", server.url)


@pytest.mark.parametrize("kind", PRESETS)
def test_a_preset_is_asked_at_its_address_with_its_key(monkeypatch: pytest.MonkeyPatch, kind: str) -> None:
    url, variable = PRESETS[kind]
    assert PROVIDERS.find(kind)._default_url == url  # type: ignore[attr-defined]
    monkeypatch.setenv(variable, "the-key")
    monkeypatch.setenv("OPENAI_API_KEY", "another")
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:9/v1")
    with serve(Step(completion())) as server:
        at(monkeypatch, kind, server)
        assert ask(f"{kind}:vendor/model:7b") == "hello"
    assert server.authorizations == ["Bearer the-key"]
    assert [request["model"] for request in server.requests] == ["vendor/model:7b"]
    assert open_provider(f"{kind}:vendor/model:7b").name == f"{kind}:vendor/model:7b"


@pytest.mark.parametrize("kind", PRESETS)
def test_base_url_and_key_variable_go_before_those_of_a_preset(
    monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    monkeypatch.setenv(PRESETS[kind][1], "the-preset's")
    monkeypatch.setenv("MINE", "mine")
    with serve(Step(completion())) as server:
        ask(f"{kind}:m", ProviderOptions(base_url=server.url, key_variable="MINE"))
        ask(f"{kind}:m", ProviderOptions(base_url=server.url))
    assert server.authorizations == ["Bearer mine", "Bearer the-preset's"]


@pytest.mark.parametrize("kind", KEYED)
def test_without_a_key_nothing_is_sent_to_a_server_that_needs_one(kind: str) -> None:
    with pytest.raises(ProviderFatal, match=f"{kind}:m needs a key in {PRESETS[kind][1]}"):
        open_provider(f"{kind}:m")
    with serve(Step(completion())) as server:
        assert ask(f"{kind}:m", ProviderOptions(base_url=server.url)) == "hello"


def test_ollama_needs_no_key(monkeypatch: pytest.MonkeyPatch) -> None:
    with serve(Step(completion())) as server:
        at(monkeypatch, "ollama", server)
        assert ask("ollama:qwen3:8b") == "hello"


def test_a_server_that_asks_for_a_key_where_none_is_set(monkeypatch: pytest.MonkeyPatch) -> None:
    with serve(failure(401, message="Unauthorized")) as server:
        options = ProviderOptions(base_url=server.url)
        with pytest.raises(ProviderFatal, match="no key is set: put one into OPENROUTER_API_KEY"):
            ask("openrouter:m", options)
        monkeypatch.setenv("OPENROUTER_API_KEY", "wrong")
        with pytest.raises(ProviderFatal, match="check the key in OPENROUTER_API_KEY"):
            ask("openrouter:m", options)


def test_a_preset_without_a_model_says_what_can_be_written() -> None:
    with pytest.raises(UsageError, match=r"there are also anthropic:\.\.\., ollama:\.\.\., openrouter:"):
        open_provider("ollama:")
