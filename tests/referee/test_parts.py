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


def test_what_is_not_as_it_should_be_is_named(some: list[Member], tmp_path: Path) -> None:
    """One is missing, one was judged in another wording, one is no member any more; an honest one was once
    refused and once not, and a cheat was accepted."""
    honest = [member for member in some if member.kind == "honest"]
    cheat = next(member for member in some if member.kind == "cheats")
    other = next(member for member in members("cpu") if member.kind == "faults")
    missing, stale, unsteady = honest[:3]
    rest = [record(member) for member in some if member not in (missing, stale, cheat)]
    refused = record(unsteady, status="wrong_output", miss="wrong_output instead of correct: because")
    accepted = record(cheat, status="correct", miss="correct instead of wrong_output: it was not seen")
    gone = [record(missing, name="who_was_taken_out"), record(other)]
    parts = [refused, record(stale, candidate="0" * 64)], [*gone, *rest, accepted]
    found = add("--add", *(write(tmp_path / f"{n}.json", part) for n, part in enumerate(parts)))
    assert found.returncode == 1
    for said in (
        f"missing: 2\n  {missing.id}\n  {stale.id}\n",
        f"judged in another wording only: 1\n  {stale.id}\n",
        f"no longer in the corpus: 1\n  {missing.kind}/who_was_taken_out\n",
        f"judged more than once: 1\n  {unsteady.id} (2 times)\n",
        f"ended in several ways: 1\n  {unsteady.id}\n",
        "honest and harmless: 1",
        f"  {unsteady.id}: wrong_output instead of correct: because",
        "cheats, wrong and faulty: 1",
    ):
        assert said in found.stdout
    assert other.id not in found.stdout


@pytest.mark.ci
@pytest.mark.parametrize(
    ("changed", "error", "option", "code", "says"),
    [
        (
            {"verifier": "1.0 policy:abd code:def"},
            "several verifiers or policies: 1.0 policy:abc code:def",
            ["--mixed"],
            0,
            "judged by 1.0 policy:abd code:def: 1\n",
        ),
        ({"device": "cuda"}, "cpu and cuda: say --device", ["--device", "cuda"], 1, "device cuda: "),
    ],
    ids=["verifiers", "devices"],
)
def test_records_of_several_are_added_only_where_that_is_asked_for(
    some: list[Member],
    tmp_path: Path,
    changed: dict[str, str],
    error: str,
    option: list[str],
    code: int,
    says: str,
) -> None:
    here, there = list(map(record, some[1:])), [record(some[0], **changed)]
    part = write(tmp_path / "part.json", here + there)
    refused = add("--add", part)
    assert refused.returncode == 2
    assert error in refused.stderr
    asked = add(*option, "--add", part)
    assert asked.returncode == code
    assert says in asked.stdout


@pytest.mark.few(1)
@pytest.mark.parametrize("text", ["{", '[{"kind": "honest"}]'])
def test_what_is_no_part_is_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "part.json"
    path.write_text(text)
    found = add("--add", path)
    assert found.returncode == 2
    assert str(path) in found.stderr
