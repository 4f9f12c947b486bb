"""`kernelproof cache`: what it says, what it removes, and when it refuses."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

from kernelproof.errors import UsageError
from kernelproof.types import Build, BuildState
from kernelproof.verifier.build import BuildIndex
from kernelproof.verifier.build.build_cache import BuildCache
from kernelproof.workspace import cache_bound, parse_bytes
from tests import terminal
from tests.cli.program import PROGRAM, Program
from tests.compile.shelves import age, folders, key_of, room, store

MEBI = 256
"""Blocks of 4 KiB in a MiB."""


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    """A cache of the test's own: four libraries of a MiB, 0 used last; an error; an index; ceilings."""
    cache = tmp_path / "cache"
    builds = BuildCache(cache / "builds")
    for number in range(4):
        store(builds, number, MEBI)
        age(cache / "builds", number, 86_400.0 * (number + 1) - 3600.0)
    failed = Build(key=key_of(9), state=BuildState.ERROR, name="bad", log="error: no")
    builds.store(failed, None)
    index = BuildIndex(cache)
    index.set(key_of(100), {"first": key_of(0)})
    index.set(key_of(101), {"first": key_of(0), "second": key_of(3)})
    (cache / "ceilings").mkdir()
    (cache / "ceilings" / "one.json").write_text("x" * 300)
    return cache


def told(program: Program) -> dict[str, object]:
    found: dict[str, object] = json.loads(program.run("cache", "info", "--json").stdout)
    return found


def test_info_on_a_cache_that_is_not_there_makes_nothing(program: Program, tmp_path: Path) -> None:
    program.cache = tmp_path / "none"
    found = told(program)
    assert (found["builds"], found["bytes"], found["oldest_use"], found["folders"]) == (0, 0, None, {})
    assert "removed 0 builds" in program.run("cache", "prune").stdout
    assert "removed 0 builds" in program.run("cache", "clear", "--yes").stdout
    assert not program.cache.exists()


def test_info_says_what_is_there(program: Program, cache: Path) -> None:
    (folders(cache / "builds")[key_of(3)] / "build.json").write_text("{")
    program.extra = {"KERNELPROOF_CACHE_BYTES": "1.5GiB"}
    found = told(program)
    states = {name: found[name] for name in ("builds", "ok", "error", "damaged", "prebuilt")}
    assert states == {"builds": 5, "ok": 3, "error": 1, "damaged": 1, "prebuilt": 2}
    assert found["bytes"] == 4 * room(MEBI) + room(0)
    assert found["bound_bytes"] == 3 << 29
    assert found["path"] == str(cache)
    assert found["folders"]["ceilings"] == 300  # type: ignore[index]
    shown = program.run("cache", "info").stdout
    for words in ("5, 4.06 MiB: 0.264 % of 1.5 GiB", "3 ok, 1 error, 1 damaged", "2 sources", "300 bytes"):
        assert words in shown


def test_prune_goes_from_the_least_recently_used(program: Program, cache: Path) -> None:
    said = program.run("cache", "prune", "--to", "2.5MiB").stdout
    assert "removed 2 builds, 2.02 MiB, 1 entry of" in said and "left    3 builds, 2.04 MiB" in said
    assert set(folders(cache / "builds")) == {key_of(number) for number in (0, 1, 9)}
    assert BuildIndex(cache).keys(key_of(100)) is not None and BuildIndex(cache).keys(key_of(101)) is None
    assert told(program)["bytes"] == 2 * room(MEBI) + room(0)


def test_prune_by_age_and_by_the_bound(program: Program, cache: Path) -> None:
    assert "removed 0 builds" in program.run("cache", "prune").stdout
    assert "removed 2 builds" in program.run("cache", "prune", "--older-than", "2").stdout
    assert set(folders(cache / "builds")) == {key_of(number) for number in (0, 1, 9)}
    program.extra = {"KERNELPROOF_CACHE_BYTES": str(room(MEBI) + room(0))}
    assert "removed 1 build," in program.run("cache", "prune").stdout
    assert "removed 2 builds" in program.run("cache", "prune", "--older-than", "0", "--to", "5TiB").stdout


def test_clear_wants_to_be_sure(program: Program, cache: Path) -> None:
    assert "--yes" in program.run("cache", "clear", code=2).stderr
    assert len(folders(cache / "builds")) == 5
    living = BuildCache(cache / "builds")
    with living.workplace() as place:
        assert "removed 5 builds, 4.06 MiB, 2 entries" in program.run("cache", "clear", "--yes").stdout
        assert place.is_dir(), "somebody is at work there"
    assert folders(cache / "builds") == {} and BuildIndex(cache).count() == 0
    assert (cache / "ceilings" / "one.json").exists()


@pytest.mark.parametrize(("answer", "code", "left"), [("n", 1, 5), ("y", 0, 0)])
def test_clear_asks_on_a_terminal(program: Program, cache: Path, answer: str, code: int, left: int) -> None:
    ours, theirs = terminal.opened(80)
    process = subprocess.Popen(
        [*PROGRAM, "cache", "clear"],
        env=program.environment,
        stdin=theirs,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    os.write(ours, f"{answer}\n".encode())
    said = process.communicate(timeout=60)[0]
    os.close(ours)
    os.close(theirs)
    assert process.returncode == code and f"Remove all builds in {cache}?" in said
    assert len(folders(cache / "builds")) == left


MALFORMED = ("", "x", "-1", "5GB", "1.5", "5 Gi", "GiB", "1e9", "٣", "nan", "5GiB!", "9" * 30)


@pytest.mark.parametrize("text", MALFORMED)
def test_a_malformed_size_says_the_forms(text: str) -> None:
    with pytest.raises(UsageError, match=r"--to: .* is no size; give bytes .*KiB, MiB, GiB or TiB"):
        parse_bytes(text, "--to")


@pytest.mark.parametrize(
    ("text", "value"),
    [("0", 0), ("123", 123), ("5GiB", 5 << 30), ("500 MiB", 500 << 20), ("1.5KiB", 1536), ("2TiB", 2 << 40)],
)
def test_sizes(text: str, value: int) -> None:
    assert parse_bytes(text, "--to") == value


@pytest.mark.parametrize(("text", "bound"), [(None, 20 << 30), ("", 20 << 30), ("7MiB", 7 << 20)])
def test_the_bound(monkeypatch: pytest.MonkeyPatch, text: str | None, bound: int) -> None:
    monkeypatch.delenv("KERNELPROOF_CACHE_BYTES", raising=False)
    if text is not None:
        monkeypatch.setenv("KERNELPROOF_CACHE_BYTES", text)
    assert cache_bound() == bound


def test_malformed_words_are_usage_errors(program: Program, cache: Path, tmp_path: Path) -> None:
    assert "--to: 'much' is no size" in program.run("cache", "prune", "--to", "much", code=2).stderr
    program.run("cache", "prune", "--older-than", "-1", code=2)
    source = tmp_path / "candidate.py"
    source.write_text("class ModelNew: pass\n")
    program.extra = {"KERNELPROOF_CACHE_BYTES": "20GB"}
    for command in (("cache", "info"), ("cache", "prune"), ("verify", source, "--problem", "level1/1")):
        assert "KERNELPROOF_CACHE_BYTES: '20GB' is no size" in program.run(*command, code=2).stderr
    program.extra = {"KERNELPROOF_CACHE_BYTES": "0"}
    assert "must be more than 0" in program.run("cache", "prune", code=2).stderr
    assert len(folders(cache / "builds")) == 5


def test_a_cache_that_cannot_be_written(program: Program, tmp_path: Path) -> None:
    program.cache = tmp_path / "odd"
    (program.cache / "builds").mkdir(parents=True)
    (program.cache / "builds" / "locks").write_text("a file where a folder should be")
    assert "cannot be written" in program.run("cache", "prune", code=3).stderr
