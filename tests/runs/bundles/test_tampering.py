"""Bundles that were edited: each edit is found and named. Those that are not to be opened have a file of
their own, test_refused.py."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kernelproof.runs.bundles.container import MANIFEST
from kernelproof.runs.bundles.writer import write_bundle
from tests.cli import material
from tests.runs.bundles import forging
from tests.runs.bundles.forging import Members, edited, mended

HERE = "attempts/17/"


def told(members: Members, folder: Path) -> list[str]:
    """What a reader says of a bundle of these members."""
    path = folder / "forged.bundle"
    path.write_bytes(forging.zipped(members))
    return forging.told(path)


Forge = Callable[[Members], Members]


def _set(table: str, **values: Any) -> Forge:
    def change(value: Any) -> None:
        assert all(name in value for name in values), f"{table} has no such field"
        value.update(values)

    return lambda members: edited(members, f"{HERE}{table}.json", change)


def _in(part: str, old: str, new: str) -> Forge:
    def forge(members: Members) -> Members:
        before = members[HERE + part]
        assert old.encode() in before
        return {**members, HERE + part: before.replace(old.encode(), new.encode())}

    return forge


def _raw(part: str, data: bytes) -> Forge:
    return lambda members: {**members, HERE + part: data}


def _then_mend(forge: Forge) -> Forge:
    return lambda members: mended(forge(members))


def _without(part: str) -> Forge:
    return lambda members: {name: data for name, data in members.items() if name != HERE + part}


def _renamed(members: Members) -> Members:
    return {name.replace("17/checks", "17/builds2"): data for name, data in members.items()}


def _swapped(members: Members) -> Members:
    other = forging.attempt(18, material.right("another"))
    theirs = forging.members(other)["attempts/18/candidate.py"]
    return {**members, f"{HERE}candidate.py": theirs}


def _swapped_with_its_answer(members: Members) -> Members:
    theirs = forging.members(forging.attempt(18, material.right("another")))
    return {**_swapped(members), f"{HERE}response.json": theirs["attempts/18/response.json"]}


def _manifest(**values: Any) -> Forge:
    return lambda members: edited(members, MANIFEST, lambda value: value.update(values))


def _wrong_size(members: Members) -> Members:
    def change(value: Any) -> None:
        value["members"][f"{HERE}candidate.py"]["bytes"] += 1

    return edited(members, MANIFEST, change)


def _other_checks(members: Members) -> Members:
    check = [{"name": "values: drawn", "outcome": "fail", "asked": "Right?", "seen": "no", "figures": {}}]
    return {**members, f"{HERE}checks.json": json.dumps(check).encode()}


DEEP = b"[" * 100_000 + b"]" * 100_000
EDITED = "was edited: its SHA-256 is not the one in the manifest"
BYTES = "and the manifest says"
Cases = dict[str, tuple[Forge, *tuple[str, ...]]]
"""What a forger does, and words that the output has to have, each in a line of its own or all in one."""
UNLISTED: Cases = {
    "additional": (
        lambda members: {**members, f"{HERE}base.py": b"pass"},
        "base.py is there, and the manifest does not list it",
    ),
    "foreign": (
        lambda members: {**members, "setup.py": b"import os"},
        "setup.py is there, and the manifest does not list it",
    ),
    "renamed": (_renamed, "checks.json' is missing", "builds2.json is there, and the manifest"),
    "swapped": (_swapped, "candidate.py", BYTES),
    "wrong size": (_wrong_size, "manifest.json was edited", "candidate.py has"),
    "manifest": (_manifest(policy="0"), "manifest.json was edited: its SHA-256"),
}
"""The manifest does not fit the members."""
CONTRADICTING: Cases = {
    "unlisted": (_without("checks.json"), "checks.json is missing, and the manifest does not list it"),
    "speedup": (_set("measurement", speedup=2.01), "the times give a speedup of 2, not 2.01"),
    "times": (
        _set("measurement", speedup=4.0, candidate_ms=0.25, speedup_interval={"low": 3.9, "high": 4.1}),
        "the samples show a speedup of 2 at most, and 4 is claimed",
    ),
    "no samples": (
        _set("measurement", candidate_samples_ms=[], baseline_samples_ms=[]),
        "a speedup is claimed, and there are no samples",
    ),
    "pace": (
        _set("measurement", speedup=0.5, candidate_ms=2.0, speedup_interval={"low": 0.4, "high": 0.6}),
        "the pace is faster, which the interval does not say",
    ),
    "candidate": (_swapped, "the candidate's source is not the one that was judged"),
    "candidate and answer": (
        _swapped_with_its_answer,
        "the response does not yield the source that was judged",
        "the candidate's source is not the one",
    ),
    "problem": (_in("problem.py", "257", "1"), "the problem's source is not the one that was judged against"),
    "no problem": (
        _raw("problem.py", b"print('hello')"),
        "the problem's source is no problem",
        "the problem's source is not the one",
    ),
    "sizes": (
        _set("problem", sizes={"small": {"N": 1}}),
        "the sizes of the problem do not follow from its source",
    ),
    "no such size": (
        _set("settings", size="tiny"),
        "the problem has no size 'tiny', by which it is said to be judged",
    ),
    "check": (_other_checks, "the verdict is correct, but a check failed ('values: drawn')"),
    "prompt": (_in("prompt.json", "Rewrite", "rewrite"), "the prompt is not the one whose SHA-256 it gives"),
    "tolerance": (
        lambda m: edited(m, f"{HERE}settings.json", lambda v: v.update(tolerance=10.0)),
        "there is no tolerance in verification.settings",
    ),
    "trials": (_set("settings", trials=0), "trials must be 1 or more"),
    "measured though wrong": (
        _set("verdict", status="wrong_output"),
        "a wrong_output verification cannot carry a measurement",
    ),
    # No JSON that is read, or no UTF-8.
    "NaN": (
        _in("measurement.json", '"speedup": 2.0', '"speedup": NaN'),
        "measurement.json: it holds NaN, which is no number of JSON",
    ),
    "1e400": (
        _in("measurement.json", '"speedup": 2.0', '"speedup": 1e400'),
        "measurement.json: it holds the number 1e400, which is too large",
    ),
    "infinite, spelled": (
        _set("measurement", speedup="Infinity"),
        "a time or a speedup is no positive number",
    ),
    "many digits": (
        _raw("seeds.json", b'{"inputs": ' + b"9" * 10_000 + b"}"),
        "seeds.json: it holds a number with thousands of digits",
    ),
    "deep": (_raw("checks.json", DEEP), "checks.json: its lists and tables lie"),
    "less deep": (
        _raw("checks.json", b"[" * 100 + b"]" * 100),
        "checks.json: its lists and tables lie more than 64 deep",
    ),
    "many values": (
        _raw("checks.json", b"[" + b"0," * 1_000_000 + b"0]"),
        "checks.json: it holds more than 500,000 values",
    ),
    "many mistakes": (
        _raw("checks.json", b"[" + b"0," * 100_000 + b"0]"),
        "100,001 of its values are none that it may have",
    ),
    "twice": (
        _in("measurement.json", '"speedup": 2.0', '"speedup": 9.0, "speedup": 2.0'),
        "measurement.json: it names 'speedup' twice",
    ),
    "no JSON": (_raw("seeds.json", b"{"), "seeds.json: it is not JSON"),
    "no UTF-8 in JSON": (_raw("seeds.json", b'"\xff"'), "seeds.json: it is not UTF-8"),
    "no UTF-8": (_raw("candidate.py", b"\xff"), "candidate.py: it is not UTF-8"),
    "no record": (_raw("verdict.json", b"[]"), "attempt 17 is none that kernelproof writes"),
}
"""The manifest was made anew; the parts contradict each other, or cannot be read."""
CASES = {
    **UNLISTED,
    **{f"{name}, mended": (_then_mend(forge), *words) for name, (forge, *words) in CONTRADICTING.items()},
}


@pytest.mark.parametrize(("forge", "named"), [(f, words) for f, *words in CASES.values()], ids=CASES)
def test_it_is_named(forge: Forge, named: list[str], tmp_path: Path) -> None:
    lines = told(forge(forging.members(forging.attempt())), tmp_path)
    for words in named:
        assert any(words in line for line in lines), f"{words!r} is not in {lines}"
    assert all("\n" not in line and len(line) < 400 for line in lines)


@pytest.mark.parametrize("name", [name for name in forging.members(forging.attempt()) if name != MANIFEST])
def test_a_member_that_was_changed_cut_or_removed_is_named(name: str, tmp_path: Path) -> None:
    sound = forging.members(forging.attempt())
    data = sound.pop(name)
    other = data[:-1] + bytes([data[-1] ^ 1])
    assert any(f"{name} {EDITED}" in line for line in told({**sound, name: other}, tmp_path))
    assert any(f"{name} has" in line and BYTES in line for line in told({**sound, name: data[:-1]}, tmp_path))
    assert any(f"{name}' is missing" in line for line in told(sound, tmp_path))


def test_a_sound_bundle_shows_nothing(tmp_path: Path) -> None:
    path = tmp_path / "sound.bundle"
    write_bundle([forging.attempt(), forging.failed(18)], path)
    assert forging.told(path) == []


def test_a_status_that_is_made_correct_meets_its_failed_check(tmp_path: Path) -> None:
    forge = _then_mend(_set("verdict", status="correct"))
    assert told(forge(forging.members(forging.failed())), tmp_path) == [
        "attempt 17: the verdict is correct, but a check failed ('values: drawn') and no flag says so"
    ]


def test_who_edits_everything_alike_leaves_no_trace(tmp_path: Path) -> None:
    """As docs/guide/reproduce.md says, only a run finds this one."""
    assert told(forging.members(forging.attempt(speedup=20.0)), tmp_path) == []
