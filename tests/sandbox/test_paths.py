"""Results are read back only from plain files, and a scratch directory can always be removed."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kernelproof.verifier.sandbox import python_paths, read_result, remove_scratch
from kernelproof.verifier.sandbox.procfs import disk_usage


def test_a_plain_result_is_read(tmp_path: Path) -> None:
    (tmp_path / "result").write_bytes(b"12345")
    assert read_result(tmp_path, "result", 5) == b"12345"


def plant_symlink(path: Path) -> None:
    (path.parent / "secret").write_text("x")
    path.symlink_to("secret")


def plant_hard_link(path: Path) -> None:
    (path.parent / "secret").write_text("x")
    path.hardlink_to(path.parent / "secret")


def plant_sparse(path: Path) -> None:
    path.touch()
    os.truncate(path, 1 << 40)


@pytest.mark.parametrize(
    "plant", [plant_symlink, plant_hard_link, plant_sparse, os.mkfifo, Path.mkdir, lambda path: None]
)
def test_anything_else_is_refused_at_once(plant, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    plant(tmp_path / "result")
    with pytest.raises((OSError, ValueError)):
        read_result(tmp_path, "result", 1 << 20)


@pytest.mark.parametrize("name", ["../secret", "/etc/passwd", "", ".", "..", "a/b"])
def test_only_names_directly_in_the_directory(name: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError):
        read_result(tmp_path, name, 10)


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    tree=st.recursive(st.none(), lambda below: st.dictionaries(st.sampled_from("abc"), below), max_leaves=12)
)
def test_any_tree_is_removed(tree: object, tmp_path: Path) -> None:
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    grow(scratch, {"top": tree})
    remove_scratch(scratch)
    assert not scratch.exists()


def grow(directory: Path, tree: dict[str, object]) -> None:
    for name, below in tree.items():
        if isinstance(below, dict):
            (directory / name).mkdir()
            grow(directory / name, below)
            (directory / name).chmod(0)
        else:
            (directory / name).symlink_to("/")


def test_a_tree_deeper_than_a_path_is_noticed_and_removed(tmp_path: Path) -> None:
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    here = os.open(scratch, os.O_RDONLY)
    for _ in range(1200):
        os.mkdir("deeper", dir_fd=here)
        below = os.open("deeper", os.O_RDONLY, dir_fd=here)
        os.close(here)
        here = below
    os.close(here)
    assert disk_usage(scratch) is None
    remove_scratch(scratch)
    assert not scratch.exists()


def test_disk_usage_follows_no_link(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"x" * 100_000)
    (tmp_path / "link").symlink_to("/usr")
    used = disk_usage(tmp_path)
    assert used is not None and 100_000 <= used < 300_000
    assert disk_usage(tmp_path, at_most_entries=1) is None


def test_python_paths_cover_the_interpreter_and_never_a_whole_prefix() -> None:
    paths = python_paths()
    shown = (*paths, Path("/usr"), Path("/bin"))
    for needed in (Path(sys.executable), Path(sys.executable).resolve(), Path(os.__file__).resolve()):
        assert any(needed.is_relative_to(path) for path in shown)
    assert Path(sys.prefix) not in paths and Path(sys.base_prefix) not in paths
