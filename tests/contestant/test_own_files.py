"""A candidate's own headers and sources: what a preprocessor reads there is what it reads in the build."""

from __future__ import annotations

import os
import subprocess
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernelproof.types import BuildRequest
from kernelproof.verifier.contestant.build_requests import with_own_files

EMPTY: dict[str, Any] = {"name": "ext", "cpp_sources": [], "cuda_sources": [], "extra_include_paths": []}
FOLDERS = ("", "a", "a/b", "c", "unit0.h")
NAMES = ("x.h", "y.h", "z.inc")

folders, names = st.sampled_from(FOLDERS), st.sampled_from(NAMES)
written = folders.map(lambda folder: f"{folder}/" if folder else "")
includes = st.builds(
    "#include {0[0]}{1}{2}{3}{0[1]}".format,
    st.sampled_from(['""', "<>"]),
    st.sampled_from(["", "", "../", "../../"]),
    written,
    names,
)
asked = st.builds("#if __has_include({0}{1})\nthere\n#endif".format, st.just('"'), names.map('{}"'.format))
texts = st.lists(includes | asked | st.sampled_from(['// #include "w.h"', "word"]), max_size=3).map("\n".join)
trees = st.dictionaries(st.tuples(folders, names), texts, max_size=8)


def plant(tree: dict[tuple[str, str], str], top: Path) -> None:
    for folder in FOLDERS:
        (top / folder).mkdir(parents=True, exist_ok=True)
    for (folder, name), text in tree.items():
        (top / folder / name).write_text(f"#pragma once\n{folder}-{name}\n{text}\n")


def preprocessed(folder: Path, source: str, include_paths: list[str]) -> str | None:
    """What a preprocessor makes of a source; None where it finds no header of a name."""
    command = ["cpp", "-P", *(f"-I{path}" for path in include_paths), source]
    finished = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=60)
    return finished.stdout if finished.returncode == 0 else None


def sent(request: dict[str, Any], folder: Path) -> BuildRequest:
    """The request as the builder reads it, its files written below a folder."""
    found = BuildRequest.model_validate(request)
    for name, text in found.files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return found


@given(trees, texts, folders, st.lists(folders, max_size=2))
def test_what_is_sent_reads_as_what_was_written(
    tree: dict[tuple[str, str], str], text: str, place: str, include: list[str]
) -> None:
    with tempfile.TemporaryDirectory() as here, tempfile.TemporaryDirectory() as there:
        top = Path(here, "deep", "down")  # what lies above has no files that an include could reach
        plant(tree, top)
        source = top / place / "source.cpp"
        source.write_text(text)
        paths = [str(top / folder) for folder in include]
        request = with_own_files(EMPTY | {"extra_include_paths": paths}, machine=["/usr"], sources=[source])
        found = sent(request, Path(there))
        expected = preprocessed(top, str(source), paths)
        if expected is not None:
            (unit,) = found.units
            assert preprocessed(Path(there), unit, list(found.extra_include_paths)) == expected


@pytest.mark.ci
@given(trees, texts, st.lists(folders, max_size=2))
def test_names_drawn_anew_do_not_reach_the_build(
    tree: dict[tuple[str, str], str], text: str, include: list[str]
) -> None:
    def request() -> dict[str, Any]:
        with tempfile.TemporaryDirectory() as one, tempfile.TemporaryDirectory() as other:
            plant(tree, Path(one))
            source = Path(other, f"{os.urandom(4).hex()}.cu")
            source.write_text(text)
            paths = [str(Path(one, folder)) for folder in include]
            return with_own_files(EMPTY | {"extra_include_paths": paths}, machine=["/usr"], sources=[source])

    assert request() == request()


def test_inline_sources_find_headers_in_the_build_directory(tmp_path: Path) -> None:
    (tmp_path / "own.h").write_text("word")
    request = EMPTY | {"cpp_sources": ['#include "own.h"']}
    assert with_own_files(request, machine=[])["files"] == {}
    assert with_own_files(request, machine=[], directory=str(tmp_path))["files"] == {"own/own.h": "word"}


def test_what_the_builder_has_too_is_not_sent(tmp_path: Path) -> None:
    (tmp_path / "own.h").write_text("word")
    request = EMPTY | {
        "cpp_sources": ["#include <own.h>"],
        "extra_include_paths": [f" {tmp_path} ", "/no/such"],
    }
    theirs = with_own_files(request, machine=[str(tmp_path)])
    assert (theirs["files"], theirs["extra_include_paths"]) == ({}, [str(tmp_path)])
    assert with_own_files(request, machine=["/usr"])["extra_include_paths"] == ["own"]


def test_more_than_a_request_holds_is_refused(tmp_path: Path) -> None:
    for number in range(600):
        (tmp_path / f"h{number}.h").write_text("")
    text = "".join(f'#include "h{number}.h"\n' for number in range(600))
    with pytest.raises(RuntimeError, match="more than 500 files"):
        with_own_files(EMPTY | {"cpp_sources": [text]}, machine=[], directory=str(tmp_path))


@pytest.mark.parametrize("name", ["a b.h", "é.h", ".hidden.h", "$(x).h", "a:b.h"])
def test_names_that_no_build_can_hold_are_refused(name: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text("")
    with pytest.raises(RuntimeError, match="cannot be built here"):
        with_own_files(EMPTY | {"cpp_sources": [f'#include "{name}"']}, machine=[], directory=str(tmp_path))


@pytest.mark.parametrize(
    "change",
    [
        {"files": {"own/../x.h": ""}},
        {"files": {"/etc/x.h": ""}},
        {"files": {"slim/ATen/ATen.h": ""}},
        {"files": {"own/a": "", "own/a/b": ""}},
        {"files": {"own/a b": ""}},
        {"files": {"own/x\n": ""}},
        {"files": {"own": ""}},
        {"files": {"own/x.h": "x" * 4_000_001}},
        {"files": {f"own/{number}": "" for number in range(501)}},
        {"files": {"own/x.cpp": ""}, "units": ("own/y.cpp",)},
        {"files": {"own/x.cpp": ""}, "units": ("own/x.cpp", "own/x.cpp")},
    ],
    ids=lambda change: str(change)[:60],
)
def test_files_that_could_leave_their_folder_are_refused(change: dict[str, Any]) -> None:
    with pytest.raises(ValueError):
        BuildRequest.model_validate({"name": "ext", **change})
