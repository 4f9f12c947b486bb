"""The build stage: what is known to be built is not imported again, as long as its builds are there."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import pytest

from kernelproof.compile import Builder, BuildIndex, clear
from kernelproof.engine.prebuild import Prebuilt, prebuild
from kernelproof.problems import open_suite
from kernelproof.sandbox import Group
from kernelproof.types import BuildState, VerifySettings

SOURCE = """
from torch.utils.cpp_extension import load_inline
for name in map(str, ("one", "two")):
    load_inline(name, 'extern "C" int ' + name + '() { return 1; }',
                no_implicit_headers=True, is_python_module=False)
"""
SHOWN = """
import missing_module
from torch.utils.cpp_extension import load_inline
load_inline("one", 'extern "C" int one() { return 1; }', no_implicit_headers=True, is_python_module=False)
"""
"""Importing this fails, but it shows what it wants."""
KNOWN = Prebuilt((), None)
"""What is returned for a source that is known to be built."""


@pytest.mark.ci
def test_a_mark_is_believed_while_all_its_builds_are_there(new_cache: Path) -> None:
    builder, settings = Builder(new_cache), VerifySettings(backend="cpp")

    def built() -> Prebuilt:
        return prebuild(builder, new_cache, SOURCE, settings, Group())

    first = built()
    assert not first.trouble and [build.state for build in first.builds] == [BuildState.OK] * 2
    assert built() == KNOWN
    (new_cache / "builds" / first.builds[1].key[:2] / first.builds[1].key / "lib.so").unlink()
    again = built()
    assert [build.cached for build in again.builds] == [True, False]
    assert built() == KNOWN
    assert (clear(new_cache).index_entries, BuildIndex(new_cache).count()) == (1, 0)
    assert not builder.holds(build.key for build in again.builds)


def test_what_a_source_shows_is_built_without_running_it(new_cache: Path) -> None:
    builder, settings = Builder(new_cache), VerifySettings(backend="cpp")
    found = prebuild(builder, new_cache, SHOWN, settings, Group())
    assert found.trouble == "" and found.sandbox is None
    assert [(build.name, build.state, build.cached) for build in found.builds] == [
        ("one", BuildState.OK, False)
    ]
    again = prebuild(builder, new_cache, SHOWN, settings, Group())
    assert [build.cached for build in again.builds] == [True]


def test_what_is_asked_for_whatever_happens_and_does_not_compile_is_said_at_once(new_cache: Path) -> None:
    builder, settings = Builder(new_cache), VerifySettings(backend="cpp")
    broken = SHOWN.replace("return 1", "return one_too_many")
    found = prebuild(builder, new_cache, broken, settings, Group())
    assert found.sandbox is None and "one_too_many" in found.trouble
    assert [(build.state, build.cached) for build in found.builds] == [(BuildState.ERROR, False)]
    assert found.raised == "Error building extension 'one'"


@pytest.mark.ci
def test_what_may_not_be_asked_for_and_does_not_compile_is_what_an_import_says(new_cache: Path) -> None:
    """A build that fails may be one that is never asked for: what the candidate does then decides."""
    builder, settings = Builder(new_cache), VerifySettings(backend="cpp")
    broken = SHOWN.replace("return 1", "return one_too_many").replace("import missing_module", "import os")
    never = broken.replace("load_inline(", "if os.environ.get('NEVER'): load_inline(")
    found = prebuild(builder, new_cache, never, settings, Group())
    assert found.sandbox is not None and (found.builds, found.trouble) == ((), "")
    always = broken.replace("load_inline(", "if not os.environ.get('NEVER'): load_inline(")
    found = prebuild(builder, new_cache, always, settings, Group())
    assert [(build.state, build.cached) for build in found.builds] == [(BuildState.ERROR, True)]
    assert "Error building extension 'one'" in found.raised


LATER = """
import os, torch
from torch import nn
from torch.utils.cpp_extension import load_inline

NOTHING = os.environ.get("NOTHING", "")

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
"""Nothing of this is shown, and calling it raises in the end."""


@pytest.mark.ci
@pytest.mark.parametrize(
    ("backend", "first", "device"),
    [("cuda", "with_a_gpu", "cuda"), ("cpp", "without", "cpu")],
)
def test_what_is_built_by_its_device_or_when_it_is_called_is_found_by_a_rehearsal(
    backend: Literal["cuda", "cpp"], first: str, device: str, new_cache: Path
) -> None:
    settings = VerifySettings(backend=backend, size="small")
    problem = open_suite().find("level1/1")
    found = prebuild(Builder(new_cache), new_cache, LATER, settings, Group(), problem)
    assert found.trouble == ""
    assert [(build.name, build.state) for build in found.builds] == [
        (first, BuildState.OK),
        ("constructed", BuildState.OK),
        (f"called_with_2_on_{device}", BuildState.OK),
    ]


@pytest.mark.slow
def test_a_rehearsal_that_dies_or_hangs_costs_nothing_that_was_built(new_cache: Path) -> None:
    settings = VerifySettings(backend="cpp", size="small", load_seconds=20)
    problem = open_suite().find("level1/1")
    for end in ("os._exit(3)", "os.kill(os.getpid(), 9)", "[None for _ in iter(int, 1)]"):
        source = LATER.replace("return torch.relu(x.to(self.somewhere))", end)
        found = prebuild(Builder(new_cache), new_cache, source, settings, Group(), problem)
        assert [build.state for build in found.builds] == [BuildState.OK] * 3 and found.trouble == ""


def test_a_damaged_mark_is_none(tmp_path: Path) -> None:
    index, name, key = BuildIndex(tmp_path), "a" * 64, "b" * 64
    assert index.keys(name) is None
    index.set(name, [key])
    assert index.keys(name) == (key,)
    path = tmp_path / "prebuilt" / "aa" / name
    for text in ("", f'["{key}"', "{}", '["../x"]', "[1]", "\udcff"):
        path.write_bytes(text.encode("utf-8", "surrogateescape"))
        assert index.keys(name) is None
    assert index.remove_stale(lambda _: True) == 1 and index.count() == 0
