"""The build stage: what is known to be built is not imported again, as long as its builds are there."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import pytest

from kernelproof.problems import open_suite
from kernelproof.types import BuildState, Problem, VerifySettings
from kernelproof.verifier.build import Builder, BuildIndex, clear
from kernelproof.verifier.engine import build_stage as build_module
from kernelproof.verifier.engine.build_stage import Prebuilt, prebuild
from kernelproof.verifier.sandbox import Group

MODEL = """
class ModelNew(torch.nn.Module):
    def forward(self, x):
        return torch.relu(x)
"""
SOURCE = f"""
import torch
from torch.utils.cpp_extension import load_inline
for name in map(str, ("one", "two")):
    load_inline(name, 'extern "C" int ' + name + '() {{ return 1; }}',
                no_implicit_headers=True, is_python_module=False)
{MODEL}"""
BY_WHOM = f"""
import sys, torch
from torch.utils.cpp_extension import load_inline
name = "stub" if "kernelproof.verifier.contestant.stub_runner" in sys.modules else "torch"
load_inline(name, 'extern "C" int one() {{ return 1; }}', no_implicit_headers=True, is_python_module=False)
{MODEL}"""
"""Its extension's name says what ran it."""


@pytest.fixture(scope="module")
def problem() -> Problem:
    return open_suite().find("level1/1")


def names(found: Prebuilt) -> list[str]:
    assert not found.trouble and all(build.state is BuildState.OK for build in found.builds)
    return [build.name for build in found.builds]


@pytest.mark.ci
def test_the_index_is_believed_while_all_its_builds_are_there(new_cache: Path, problem: Problem) -> None:
    builder, settings = Builder(new_cache), VerifySettings(backend="cpp")

    def built() -> Prebuilt:
        return prebuild(builder, new_cache, SOURCE, settings, Group(), problem)

    first = built()
    assert names(first) == ["one", "two"] and first.sandbox is not None
    known = built()
    assert known.sandbox is None and known.contents.keys() == first.contents.keys()
    assert [(build.name, build.cached) for build in known.builds] == [("one", True), ("two", True)]
    (new_cache / "builds" / first.builds[1].key[:2] / first.builds[1].key / "lib.so").unlink()
    again = built()
    assert again.sandbox is not None and [build.cached for build in again.builds] == [True, False]
    other = prebuild(builder, new_cache, SOURCE, settings, Group(), open_suite().find("level1/2"))
    assert other.sandbox is not None  # what it is made with may be in its source
    assert (clear(new_cache).index_entries, BuildIndex(new_cache).count()) == (2, 0)
    assert built().sandbox is not None


@pytest.mark.parametrize(
    ("change", "runner"),
    [
        ("import json\nassert torch.ones(2).sum() == 2 and json.loads('1') == 1", "stub"),
        ("[None for _ in iter(int, 1)] if name == 'stub' else None", "torch"),
        ("if name == 'stub': sys.exit(0)", "torch"),
        ("for _ in range(torch.ones(2).dim()): pass", "torch"),
    ],
)
def test_it_runs_with_torch_only_where_the_stub_does_not_do(
    change: str, runner: str, new_cache: Path, problem: Problem, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(build_module, "STUB_SECONDS", 3.0)
    source = BY_WHOM.replace("load_inline(name", f"{change}\nload_inline(name")
    found = prebuild(Builder(new_cache), new_cache, source, VerifySettings(backend="cpp"), Group(), problem)
    assert names(found) == [runner]


def test_an_index_that_cannot_be_written_costs_another_run(new_cache: Path, problem: Problem) -> None:
    builder, settings = Builder(new_cache), VerifySettings(backend="cpp")
    (new_cache / "prebuilt").write_text("")
    for cached in (False, True):
        found = prebuild(builder, new_cache, BY_WHOM, settings, Group(), problem)
        assert found.sandbox is not None and [build.cached for build in found.builds] == [cached]


def test_a_source_that_names_no_builds_is_not_run(new_cache: Path, problem: Problem) -> None:
    settings = VerifySettings(backend="cpp")
    found = prebuild(Builder(new_cache), new_cache, f"import torch\n{MODEL}", settings, Group(), problem)
    assert found == Prebuilt((), None)


@pytest.mark.parametrize("place", ["", "class ModelNew(torch.nn.Module):\n    def __init__(self):\n        "])
def test_a_build_that_it_asks_for_in_any_case_ends_it_when_it_fails(
    place: str, new_cache: Path, problem: Problem
) -> None:
    builder, settings = Builder(new_cache), VerifySettings(backend="cpp")
    broken = BY_WHOM.replace("return 1", "return one_too_many").removesuffix(MODEL)
    broken = broken.replace("load_inline(name", f"{place}load_inline(name")
    found = prebuild(builder, new_cache, broken, settings, Group(), problem)
    assert [(build.name, build.state) for build in found.builds] == [("stub", BuildState.ERROR)]
    assert "one_too_many" in found.trouble and found.raised.startswith("Error building extension 'stub'")


@pytest.mark.ci
def test_torch_decides_about_a_build_that_may_not_be_asked_for(new_cache: Path, problem: Problem) -> None:
    builder, settings = Builder(new_cache), VerifySettings(backend="cpp")
    broken = BY_WHOM.replace("return 1", "return one_too_many")
    never = broken.replace("load_inline(name", "if torch.ones(2).sum() == 3: load_inline(name")
    found = prebuild(builder, new_cache, never, settings, Group(), problem)
    assert (found.builds, found.trouble) == ((), "")
    always = never.replace("== 3", "== 2")
    found = prebuild(builder, new_cache, always, settings, Group(), problem)
    assert [(build.name, build.state) for build in found.builds] == [("torch", BuildState.ERROR)]
    assert "Error building extension 'torch'" in found.raised


LATER = """
import torch
from torch import nn
from torch.utils.cpp_extension import load_inline

NOTHING = "" if torch.ones(2).dim() == 1 else "_with_a_stub"

def built(name, text):
    return load_inline(name, text, no_implicit_headers=True, is_python_module=False)

if torch.cuda.is_available():
    place = torch.zeros(3, device="cuda")
    built("with_a_gpu" + NOTHING, 'extern "C" int f() { return 1; }')
else:
    built("without" + NOTHING, 'extern "C" int f() { return 2; }')

class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        built("constructed" + NOTHING, 'extern "C" int f() { return 3; }')

    def forward(self, x):
        built(f"called_with_{x.dim()}_on_{x.device.type}", 'extern "C" int f() { return 4; }')
        return torch.relu(x.to(self.somewhere))
"""
"""A stub does not show what this asks for, and calling it raises in the end."""


@pytest.mark.ci
@pytest.mark.parametrize(
    ("backend", "first", "device"),
    [("cuda", "with_a_gpu", "cuda"), ("cpp", "without", "cpu")],
)
def test_what_is_built_by_its_device_or_when_it_is_called_is_found_by_a_rehearsal(
    backend: Literal["cuda", "cpp"], first: str, device: str, new_cache: Path, problem: Problem
) -> None:
    settings = VerifySettings(backend=backend, size="small")
    found = prebuild(Builder(new_cache), new_cache, LATER, settings, Group(), problem)
    assert found.trouble == ""
    assert [(build.name, build.state) for build in found.builds] == [
        (first, BuildState.OK),
        ("constructed", BuildState.OK),
        (f"called_with_2_on_{device}", BuildState.OK),
    ]


@pytest.mark.slow
def test_a_rehearsal_that_dies_or_hangs_costs_nothing_that_was_built(
    new_cache: Path, problem: Problem
) -> None:
    settings = VerifySettings(backend="cpp", size="small", load_seconds=20)
    for end in ("os._exit(3)", "os.kill(os.getpid(), 9)", "[None for _ in iter(int, 1)]"):
        source = LATER.replace("return torch.relu(x.to(self.somewhere))", end)
        found = prebuild(Builder(new_cache), new_cache, source, settings, Group(), problem)
        assert [build.state for build in found.builds] == [BuildState.OK] * 3 and found.trouble == ""


def test_a_damaged_mark_is_none(tmp_path: Path) -> None:
    index, name, key = BuildIndex(tmp_path), "a" * 64, "b" * 64
    assert index.keys(name) is None
    index.set(name, {"content": key})
    assert index.keys(name) == {"content": key}
    path = tmp_path / "prebuilt" / "aa" / name
    for text in (
        "",
        f'{{"content": "{key}"',
        f'["{key}"]',
        '{"content": "../x"}',
        '{"content": 1}',
        "\udcff",
    ):
        path.write_bytes(text.encode("utf-8", "surrogateescape"))
        assert index.keys(name) is None
    assert index.remove_stale(lambda _: True) == 1 and index.count() == 0
