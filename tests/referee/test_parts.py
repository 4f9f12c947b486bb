"""Files of several runs of the corpus add up to one table, and what does not fit together is refused."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.referee.corpus import Member, members
from tests.referee.parts import wording

ROOT = Path(__file__).parents[2]
PATTERNS = ("honest/relu_*", "wrong/relu_*", "cheats/cached_by_*")
"""Enough members for a table of three kinds."""


@pytest.fixture(scope="module")
def some() -> list[Member]:
    names = tuple(pattern.rstrip("*") for pattern in PATTERNS)
    return [member for member in members("cpu") if member.id.startswith(names)]


def record(member: Member, **changed: Any) -> dict[str, Any]:
    """A record that says what the member's header says."""
    return {
        "kind": member.kind,
        "name": member.name,
        "device": member.device,
        "candidate": wording(member),
        "status": member.expected[0].value,
        "miss": None,
        "verifier": "1.0 policy:abc code:def",
        "place": "a processor",
    } | changed


def write(path: Path, records: list[dict[str, Any]]) -> Path:
    path.write_text(json.dumps(records))
    return path


def add(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    only = [word for pattern in PATTERNS for word in ("--only", pattern)]
    command = [sys.executable, "scripts/confusion.py", *only, *map(str, arguments)]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120)


def test_shares_add_up_to_the_whole(some: list[Member], tmp_path: Path) -> None:
    parts = [write(tmp_path / f"{n}.json", [record(member) for member in some[n::3]]) for n in range(3)]
    found = add("--json", tmp_path / "all.json", "--add", *parts)
    assert found.returncode == 0, found.stdout + found.stderr
    assert f"device cpu: {len(some)} of {len(some)} members judged" in found.stdout
    assert "missing" not in found.stdout
    kept = json.loads((tmp_path / "all.json").read_text())
    assert sorted(each["name"] for each in kept) == sorted(member.name for member in some)
    bad = sum(member.kind != "honest" for member in some)
    assert f"accepted of {bad} cheats, wrong and faulty: 0" in found.stdout


def test_who_is_missing_is_named(some: list[Member], tmp_path: Path) -> None:
    found = add("--add", write(tmp_path / "part.json", [record(member) for member in some[1:]]))
    assert found.returncode == 1
    assert f"missing: 1\n  {some[0].id}\n" in found.stdout


def test_a_verdict_on_another_wording_does_not_count(some: list[Member], tmp_path: Path) -> None:
    records = [record(some[0], candidate="0" * 64), *map(record, some[1:])]
    found = add("--add", write(tmp_path / "part.json", records))
    assert found.returncode == 1
    assert f"judged in another wording only: 1\n  {some[0].id}\nmissing: 1\n" in found.stdout


def test_only_who_is_in_no_file_is_no_longer_in_the_corpus(some: list[Member], tmp_path: Path) -> None:
    other = next(member for member in members("cpu") if member.kind == "faults")
    records = [record(some[0], name="who_was_taken_out"), record(other), *map(record, some)]
    found = add("--add", write(tmp_path / "part.json", records))
    assert found.returncode == 0
    assert f"no longer in the corpus: 1\n  {some[0].kind}/who_was_taken_out\n" in found.stdout
    assert other.id not in found.stdout


@pytest.mark.few(1)
@pytest.mark.parametrize("first", [True, False], ids=["first", "last"])
def test_one_undeserved_verdict_outweighs_others(some: list[Member], tmp_path: Path, first: bool) -> None:
    honest = next(member for member in some if member.kind == "honest")
    refused = record(honest, status="wrong_output", miss="wrong_output instead of correct: because")
    good, bad = (
        write(tmp_path / "good.json", list(map(record, some))),
        write(tmp_path / "bad.json", [refused]),
    )
    found = add("--add", *((bad, good) if first else (good, bad)))
    assert found.returncode == 1
    assert f"judged more than once: 1\n  {honest.id} (2 times)\n" in found.stdout
    assert f"ended in several ways: 1\n  {honest.id}\n" in found.stdout
    assert "honest and harmless: 1" in found.stdout
    assert f"  {honest.id}: wrong_output instead of correct: because" in found.stdout


def test_an_accepted_cheat_is_told(some: list[Member], tmp_path: Path) -> None:
    cheat = next(member for member in some if member.kind == "cheats")
    rest = [record(member) for member in some if member is not cheat]
    accepted = record(cheat, status="correct", miss="correct instead of wrong_output: it was not seen")
    found = add("--add", write(tmp_path / "part.json", [*rest, accepted]))
    assert found.returncode == 1
    assert "cheats, wrong and faulty: 1" in found.stdout


@pytest.mark.ci
def test_several_verifiers_are_refused_unless_asked_for(some: list[Member], tmp_path: Path) -> None:
    records = [record(some[0], verifier="1.0 policy:abd code:def"), *map(record, some[1:])]
    part = write(tmp_path / "part.json", records)
    found = add("--add", part)
    assert found.returncode == 2
    assert "several verifiers or policies: 1.0 policy:abc code:def" in found.stderr
    allowed = add("--mixed", "--add", part)
    assert allowed.returncode == 0
    assert "judged by 1.0 policy:abd code:def: 1\n" in allowed.stdout


@pytest.mark.ci
def test_several_devices_are_refused_unless_one_is_said(some: list[Member], tmp_path: Path) -> None:
    here, there = map(record, some), [record(some[0], device="cuda", place="a GPU")]
    parts = write(tmp_path / "here.json", list(here)), write(tmp_path / "there.json", there)
    found = add("--add", *parts)
    assert found.returncode == 2
    assert "cpu and cuda: say --device" in found.stderr
    assert add("--device", "cpu", "--add", *parts).returncode == 0
    other = add("--device", "cuda", "--add", *parts)
    assert other.returncode == 1
    assert "a processor" not in other.stdout


@pytest.mark.few(1)
@pytest.mark.parametrize("text", ["{", '{"kind": "honest"}', '[{"kind": "honest"}]'])
def test_what_is_no_part_is_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "part.json"
    path.write_text(text)
    found = add("--add", path)
    assert found.returncode == 2
    assert str(path) in found.stderr
    assert "Traceback" not in found.stderr
