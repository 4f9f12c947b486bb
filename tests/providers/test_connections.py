"""How many connections a provider may have, by which proxy they go, and that a dead one is noticed."""

from __future__ import annotations

import socket
import subprocess
import sys

import anyio
import pytest

from kernelproof.errors import ProviderFatal
from kernelproof.providers import ProviderOptions, open_provider
from kernelproof.providers.server import Connections, proxy_for
from tests.faultserver import start
from tests.providers.questions import question


def limited(soft: int, hard: int, concurrency: int) -> subprocess.CompletedProcess[str]:
    """Opens a provider in a process that may have so many open files; says how many it may have then."""
    program = f"""
import resource
resource.setrlimit(resource.RLIMIT_NOFILE, ({soft}, {hard}))
from kernelproof.errors import UsageError
from kernelproof.providers import ProviderOptions, open_provider
try:
    open_provider("openai:m", ProviderOptions(base_url="http://localhost/v1", concurrency={concurrency}))
except UsageError as error:
    print(error)
print(resource.getrlimit(resource.RLIMIT_NOFILE)[0])
"""
    return subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)


def test_many_connections_raise_the_limit_of_open_files() -> None:
    assert int(limited(256, 8192, 2000).stdout) >= 2000
    assert int(limited(256, 8192, 8).stdout) == 256


def test_more_connections_than_the_system_allows_are_refused_with_a_number() -> None:
    said = limited(256, 1024, 2000).stdout
    assert "--concurrency 2000 needs 2200 open files, and 1024 are allowed (ulimit -n)" in said
    assert "at most --concurrency 824 works here" in said


@pytest.fixture
def no_proxy(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    for name in ("http_proxy", "https_proxy", "all_proxy", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)
    return monkeypatch


def test_proxies_come_from_the_environment(no_proxy: pytest.MonkeyPatch) -> None:
    assert proxy_for("https://api.example/v1") is None
    no_proxy.setenv("HTTPS_PROXY", "http://proxy.example:3128")
    assert proxy_for("https://api.example/v1") == "http://proxy.example:3128"
    assert proxy_for("http://localhost:8000/v1") is None
    no_proxy.setenv("ALL_PROXY", "proxy.example:1080")
    no_proxy.setenv("NO_PROXY", "localhost,127.0.0.1")
    assert proxy_for("http://localhost:8000/v1") is None
    assert proxy_for("http://other:8000/v1") == "http://proxy.example:1080"


def test_a_proxy_is_asked_for_the_server(no_proxy: pytest.MonkeyPatch) -> None:
    async def asked() -> str | None:
        provider = open_provider("openai:any", ProviderOptions(base_url="http://nowhere.invalid/v1"))
        try:
            return (await provider.ask(question())).text
        finally:
            await provider.aclose()

    with start() as server:
        no_proxy.setenv("HTTP_PROXY", server.url.removesuffix("/v1"))
        assert anyio.run(asked) == "no code today"
        assert server.counts()["requests"] == 1


def test_a_proxy_that_is_none_is_told_in_one_line(no_proxy: pytest.MonkeyPatch) -> None:
    no_proxy.setenv("HTTP_PROXY", "gopher://proxy.example")
    provider = open_provider("openai:any", ProviderOptions(base_url="http://nowhere.invalid/v1"))
    with pytest.raises(ProviderFatal, match=r"through the proxy gopher://proxy\.example: "):
        anyio.run(provider.ask, question())


def test_connections_are_probed_while_they_are_silent(no_proxy: pytest.MonkeyPatch) -> None:
    async def options() -> list[int]:
        connections = Connections("key", None, 5.0)
        with start() as server, connections.client() as client:
            http = client._client
            async with http.stream("GET", f"{server.url}/counts") as reply:
                connected = reply.extensions["network_stream"].get_extra_info("socket")
                found = [connected.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE)]
                if sys.platform == "linux":
                    found.append(connected.getsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE))
        await connections.aclose()
        return found

    assert anyio.run(options) in ([1], [1, 60])


def test_clients_are_shared_and_made_as_they_are_needed(no_proxy: pytest.MonkeyPatch) -> None:
    no_proxy.setattr("kernelproof.providers.server.EACH", 2)
    connections = Connections("key", "http://localhost/v1", 5.0)
    with connections.client() as a, connections.client() as b, connections.client() as c:
        assert a is b and c is not a
    with connections.client() as again:
        assert again is a
