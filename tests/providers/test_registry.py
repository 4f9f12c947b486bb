"""Providers of other packages, by entry point and by decorator; and what is said of those that are none."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from pathlib import Path

import pytest

from kernelproof.errors import UsageError
from kernelproof.providers import Provider, ProviderOptions, Question, open_provider, provider
from kernelproof.types import Response
from tests.plugins import install
from tests.providers.questions import question

ECHO = """
from kernelproof.providers import Provider, provider
from kernelproof.types import Response


class Echo(Provider):
    def __init__(self, rest, options):
        self.rest, self.options = rest, options

    @property
    def name(self):
        return "echo:" + self.rest

    async def ask(self, question):
        return Response(text=f"{self.rest} {question} {dict(self.options.sampling)}", raw={})
"""


def installed(monkeypatch: pytest.MonkeyPatch, folder: Path, package: str, source: str, **kinds: str) -> None:
    """Installs a package whose providers are `kinds`: kind to class."""
    points = {kind: f"{package}:{name}" for kind, name in kinds.items()}
    monkeypatch.syspath_prepend(str(install(folder, package, source, providers=points)))


def test_a_package_adds_a_provider_by_its_entry_point(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    installed(monkeypatch, tmp_path, "echo_by_point", ECHO, echo="Echo")
    opened = open_provider("echo:a:b", ProviderOptions(sampling={"temperature": 0.5}))
    assert opened.name == "echo:a:b"
    answer = asyncio.run(opened.ask(question())).text
    assert answer == "a:b level1/1, backend cpp, sample 0, turn 1 {'temperature': 0.5}"
    assert opened.turns("level1/1", "cpp", 0) is None
    asyncio.run(opened.aclose())


def test_a_package_may_decorate_the_class_as_well(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = ECHO.replace("class Echo", '@provider("echo-decorated")\nclass Echo')
    installed(monkeypatch, tmp_path, "echo_decorated", source, **{"echo-decorated": "Echo"})
    assert open_provider("echo-decorated:x").name == "echo:x"


def test_a_decorator_is_enough_in_the_same_process() -> None:
    @provider("in-process")
    class Fixed(Provider):
        def __init__(self, rest: str, options: ProviderOptions) -> None:
            self._rest = rest

        @property
        def name(self) -> str:
            return f"in-process:{self._rest}"

        async def ask(self, question: Question) -> Response:
            return Response(text=self._rest, raw={})

    assert asyncio.run(open_provider("in-process:hello").ask(question())).text == "hello"


def test_an_unknown_kind_is_told_with_those_that_there_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    installed(monkeypatch, tmp_path, "echo_listed", "raise SystemError('never imported')", listed="Echo")
    with pytest.raises(UsageError) as caught:
        open_provider("lsited:x")
    said = str(caught.value)
    assert said.startswith("no model 'lsited:x', because no provider is called 'lsited'; write openai:MODEL")
    assert "listed:..." in said.partition("there are also")[2]


@pytest.mark.parametrize(
    "source, says",
    [
        ("import no_such_package_at_all", "cannot be loaded from .*: ModuleNotFoundError: .*no_such_package"),
        ("class Another: pass", "cannot be loaded from .*: AttributeError"),
        ("Broken = 3", "is no class"),
        ("class Broken: pass", r"lacks ask, turns, aclose"),
    ],
)
def test_a_broken_package_is_a_usage_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, source: str, says: str, request: pytest.FixtureRequest
) -> None:
    package = f"broken_{abs(hash(request.node.name))}"
    installed(monkeypatch, tmp_path, package, source, broken="Broken")
    with pytest.raises(UsageError, match=f"the provider 'broken'.*{says}"):
        open_provider("broken:x")


def test_two_packages_with_one_kind_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for package in ("twice_one", "twice_two"):
        installed(monkeypatch, tmp_path / package, package, ECHO, twice="Echo")
    with pytest.raises(
        UsageError, match="two packages have a provider 'twice': twice_one:Echo and twice_two"
    ):
        open_provider("twice:x")


def test_two_classes_with_one_kind_are_refused() -> None:
    with pytest.raises(UsageError, match=r"the provider 'openai' is there twice: .*OpenAIProvider"):

        @provider("openai")
        class Other(Provider):
            def __init__(self, rest: str, options: ProviderOptions) -> None: ...

            @property
            def name(self) -> str:
                return "openai:other"

            async def ask(self, question: Question) -> Response:
                raise AssertionError("nobody asks it")


def test_a_package_cannot_take_a_kind_of_ours(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    installed(monkeypatch, tmp_path, "echo_as_replay", ECHO, replay="Echo")
    assert open_provider("replay:demo").name == "replay:demo"
    assert "echo_as_replay" not in sys.modules


def test_opening_one_imports_no_package_of_another() -> None:
    code = "from kernelproof.providers import open_provider; open_provider('replay:demo')"
    code += "; import sys; print('openai' in sys.modules, 'torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False False\n"
