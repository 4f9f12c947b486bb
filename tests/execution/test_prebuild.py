"""The build stage: what is known to be built is not imported again, as long as its builds are there."""

from __future__ import annotations

from pathlib import Path

from pipeline.build import Builder, Marks, clear
from pipeline.execution.prebuild import Prebuilt, prebuild
from pipeline.nouns import BuildState, VerifySettings
from pipeline.sandbox import Group

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


def test_a_mark_is_believed_while_all_its_builds_are_there(tmp_path: Path) -> None:
    builder, settings = Builder(tmp_path), VerifySettings(backend="cpp")

    def built() -> Prebuilt:
        return prebuild(builder, tmp_path, SOURCE, settings, Group())

    first = built()
    assert not first.trouble and [build.state for build in first.builds] == [BuildState.OK] * 2
    assert built() == KNOWN
    (tmp_path / "builds" / first.builds[1].key[:2] / first.builds[1].key / "lib.so").unlink()
    again = built()
    assert [build.cached for build in again.builds] == [True, False]
    assert built() == KNOWN
    assert (clear(tmp_path).marks, Marks(tmp_path).count()) == (1, 0)
    assert not builder.holds(build.key for build in again.builds)


def test_what_a_source_shows_is_built_without_running_it(tmp_path: Path) -> None:
    builder, settings = Builder(tmp_path), VerifySettings(backend="cpp")
    found = prebuild(builder, tmp_path, SHOWN, settings, Group())
    assert found.trouble == "" and found.sandbox is None
    assert [(build.name, build.state, build.cached) for build in found.builds] == [
        ("one", BuildState.OK, False)
    ]
    again = prebuild(builder, tmp_path, SHOWN, settings, Group())
    assert [build.cached for build in again.builds] == [True]


def test_what_does_not_compile_is_what_an_import_says(tmp_path: Path) -> None:
    """A build that fails may be one that is never asked for: what the candidate does then decides."""
    builder, settings = Builder(tmp_path), VerifySettings(backend="cpp")
    broken = SHOWN.replace("return 1", "return one_too_many").replace("import missing_module", "")
    found = prebuild(builder, tmp_path, broken, settings, Group())
    assert found.sandbox is not None and "one_too_many" in found.trouble
    assert [(build.state, build.cached) for build in found.builds] == [(BuildState.ERROR, True)]
    unused = broken.replace("load_inline(", "if False: load_inline(")
    found = prebuild(builder, tmp_path, unused, settings, Group())
    assert (found.builds, found.trouble) == ((), "")


def test_a_damaged_mark_is_none(tmp_path: Path) -> None:
    marks, name, key = Marks(tmp_path), "a" * 64, "b" * 64
    assert marks.keys(name) is None
    marks.set(name, [key])
    assert marks.keys(name) == (key,)
    path = tmp_path / "prebuilt" / "aa" / name
    for text in ("", f'["{key}"', "{}", '["../x"]', "[1]", "\udcff"):
        path.write_bytes(text.encode("utf-8", "surrogateescape"))
        assert marks.keys(name) is None
    assert marks.remove_stale(lambda _: True) == 1 and marks.count() == 0
