"""Bundles that were edited: each edit is found and named. Those that are not to be opened have a file of
their own, test_refused.py."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from kernelproof.runs.bundles.container import MANIFEST
from kernelproof.runs.bundles.writer import write_bundle
from tests.cli import material
from tests.runs.bundles import forging
from tests.runs.bundles.forging import Members, edited, mended

HERE = "attempts/17/"


class Case(NamedTuple):
    """One tampering."""

    mechanism: str
    forge: Callable[[Members], Members]
    named: tuple[str, ...]
    """Words that the output has to have, each in a line of its own or all in one."""


def _set(table: str, **values: Any) -> Callable[[Members], Members]:
    def change(value: Any) -> None:
        assert all(name in value for name in values), f"{table} has no such field"
        value.update(values)

    return lambda members: edited(members, f"{HERE}{table}.json", change)


def _in(part: str, old: str, new: str) -> Callable[[Members], Members]:
    def forge(members: Members) -> Members:
        before = members[HERE + part]
        assert old.encode() in before
        return {**members, HERE + part: before.replace(old.encode(), new.encode())}

    return forge


def _raw(part: str, data: bytes) -> Callable[[Members], Members]:
    return lambda members: {**members, HERE + part: data}


def _then_mend(forge: Callable[[Members], Members]) -> Callable[[Members], Members]:
    return lambda members: mended(forge(members))


def _without(part: str) -> Callable[[Members], Members]:
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


def _manifest(**values: Any) -> Callable[[Members], Members]:
    return lambda members: edited(members, MANIFEST, lambda value: value.update(values))


def _wrong_size(members: Members) -> Members:
    def change(value: Any) -> None:
        value["members"][f"{HERE}candidate.py"]["bytes"] += 1

    return edited(members, MANIFEST, change)


def _unlisted(members: Members) -> Members:
    """A member and its line in the manifest are gone, and the manifest's own hash is right again."""
    return mended(_without("checks.json")(members))


def _other_checks(members: Members) -> Members:
    check = [{"name": "values: drawn", "outcome": "fail", "asked": "Right?", "seen": "no", "figures": {}}]
    return {**members, f"{HERE}checks.json": json.dumps(check).encode()}


DEEP = b"[" * 100_000 + b"]" * 100_000
EDITED = "was edited: its SHA-256 is not the one in the manifest"
BYTES = "and the manifest says"
CASES = {
    # A hash finds these: one member was changed, and the manifest was left alone.
    "speedup": Case(
        "The speedup is raised.", _in("measurement.json", ": 2.0", ": 9.0"), ("measurement.json", EDITED)
    ),
    "interval": Case(
        "The interval's lower end, which ranks, is raised.",
        _in("measurement.json", '"low": 1.98', '"low": 1.99'),
        ("measurement.json", EDITED),
    ),
    "candidate": Case(
        "The candidate's source is changed.", _in("candidate.py", "0.0f", "1.0f"), ("candidate.py", EDITED)
    ),
    "problem": Case("The problem is made easier.", _in("problem.py", "257", "256"), ("problem.py", EDITED)),
    "status": Case("The status is changed.", _set("verdict", status="wrong_shape"), ("verdict.json", BYTES)),
    "check": Case(
        "A check's outcome is changed.", _in("checks.json", '"pass"', '"fail"'), ("checks.json", EDITED)
    ),
    "seeds": Case("The seeds are others.", _set("seeds", inputs=5), ("seeds.json", BYTES)),
    "response": Case(
        "The answer is another.", _in("response.json", "kernel.", "Kernel."), ("response.json", EDITED)
    ),
    "prompt": Case(
        "The prompt is another.", _in("prompt.json", "Rewrite", "rewrite"), ("prompt.json", EDITED)
    ),
    "environment": Case(
        "The claim is moved to another processor.",
        _in("environment.json", "Test CPU", "Best CPU"),
        ("environment.json", EDITED),
    ),
    "build record": Case(
        "A build is renamed.", _in("builds.json", '"ext"', '"xte"'), ("builds.json", EDITED)
    ),
    "model": Case(
        "The model's name is another.", _in("run.json", "openai:m", "openai:n"), ("run.json", EDITED)
    ),
    "missing": Case("A member is taken out.", _without("checks.json"), ("checks.json' is missing",)),
    "additional": Case(
        "A member is put in.",
        lambda members: {**members, f"{HERE}base.py": b"pass"},
        ("base.py is there, and the manifest does not list it",),
    ),
    "foreign": Case(
        "A file that no bundle has is put in.",
        lambda members: {**members, "setup.py": b"import os"},
        ("setup.py is there, and the manifest does not list it",),
    ),
    "renamed": Case(
        "A member is renamed.",
        _renamed,
        ("checks.json' is missing", "builds2.json is there, and the manifest"),
    ),
    "swapped": Case("The candidate is another attempt's.", _swapped, ("candidate.py", BYTES)),
    "truncated": Case(
        "A member is cut.",
        lambda members: {**members, f"{HERE}candidate.py": members[f"{HERE}candidate.py"][:-40]},
        ("candidate.py has", BYTES),
    ),
    "wrong size": Case(
        "The manifest gives another size.", _wrong_size, ("manifest.json was edited", "candidate.py has")
    ),
    "manifest": Case(
        "The manifest claims another policy.",
        _manifest(policy="0"),
        ("manifest.json was edited: its SHA-256",),
    ),
    # The parts contradict each other: the manifest was made anew.
    "unlisted": Case(
        "A member is taken out of the manifest too.",
        _unlisted,
        ("checks.json is missing, and the manifest does not list it",),
    ),
    "speedup, mended": Case(
        "The speedup alone is raised.",
        _then_mend(_set("measurement", speedup=2.01)),
        ("the times give a speedup of 2, not 2.01",),
    ),
    "times, mended": Case(
        "Speedup, interval and times are raised together; the samples are left.",
        _then_mend(
            _set("measurement", speedup=4.0, candidate_ms=0.25, speedup_interval={"low": 3.9, "high": 4.1})
        ),
        ("the samples show a speedup of 2 at most, and 4 is claimed",),
    ),
    "no samples, mended": Case(
        "The samples are taken out.",
        _then_mend(_set("measurement", candidate_samples_ms=[], baseline_samples_ms=[])),
        ("a speedup is claimed, and there are no samples",),
    ),
    "pace, mended": Case(
        "What is slower is called faster.",
        _then_mend(
            _set("measurement", speedup=0.5, candidate_ms=2.0, speedup_interval={"low": 0.4, "high": 0.6})
        ),
        ("the pace is faster, which the interval does not say",),
    ),
    "candidate, mended": Case(
        "The candidate is another attempt's.",
        _then_mend(_swapped),
        ("the candidate's source is not the one that was judged",),
    ),
    "candidate and answer, mended": Case(
        "The candidate and the answer are another attempt's.",
        _then_mend(_swapped_with_its_answer),
        ("the response does not yield the source that was judged", "the candidate's source is not the one"),
    ),
    "problem, mended": Case(
        "The problem is made easier.",
        _then_mend(_in("problem.py", "257", "1")),
        ("the problem's source is not the one that was judged against",),
    ),
    "no problem": Case(
        "The problem is no problem.",
        _then_mend(_raw("problem.py", b"print('hello')")),
        ("the problem's source is no problem", "the problem's source is not the one"),
    ),
    "sizes, mended": Case(
        "The problem gets a size of the forger's.",
        _then_mend(_set("problem", sizes={"small": {"N": 1}})),
        ("the sizes of the problem do not follow from its source",),
    ),
    "no such size": Case(
        "The settings name a size that the problem has not.",
        _then_mend(_set("settings", size="tiny")),
        ("the problem has no size 'tiny', by which it is said to be judged",),
    ),
    "check, mended": Case(
        "A failed check is left in, and the verdict is correct.",
        _then_mend(_other_checks),
        ("the verdict is correct, but a check failed ('values: drawn')",),
    ),
    "prompt, mended": Case(
        "The prompt is another.",
        _then_mend(_in("prompt.json", "Rewrite", "rewrite")),
        ("the prompt is not the one whose SHA-256 it gives",),
    ),
    "tolerance": Case(
        "The settings get a looser tolerance, which is none of theirs.",
        _then_mend(lambda m: edited(m, f"{HERE}settings.json", lambda v: v.update(tolerance=10.0))),
        ("there is no tolerance in verification.settings",),
    ),
    "trials": Case(
        "The settings ask for no trials.",
        _then_mend(_set("settings", trials=0)),
        ("trials must be 1 or more",),
    ),
    "measured though wrong": Case(
        "A failed attempt gets a measurement.",
        _then_mend(_set("verdict", status="wrong_output")),
        ("a wrong_output verification cannot carry a measurement",),
    ),
    # These are no JSON, or not UTF-8.
    "NaN": Case(
        "A number is NaN.",
        _then_mend(_in("measurement.json", '"speedup": 2.0', '"speedup": NaN')),
        ("measurement.json: it holds NaN, which is no number of JSON",),
    ),
    "1e400": Case(
        "A number is beyond every float.",
        _then_mend(_in("measurement.json", '"speedup": 2.0', '"speedup": 1e400')),
        ("measurement.json: it holds the number 1e400, which is too large",),
    ),
    "infinite, spelled": Case(
        "A number is infinite, spelled as bundles do.",
        _then_mend(_set("measurement", speedup="Infinity")),
        ("a time or a speedup is no positive number",),
    ),
    "many digits": Case(
        "A number has 10,000 digits.",
        _then_mend(_raw("seeds.json", b'{"inputs": ' + b"9" * 10_000 + b"}")),
        ("seeds.json: it holds a number with thousands of digits",),
    ),
    "deep": Case(
        "Lists lie 100,000 deep.",
        _then_mend(_raw("checks.json", DEEP)),
        ("checks.json: its lists and tables lie",),
    ),
    "less deep": Case(
        "Lists lie 100 deep, which Python reads.",
        _then_mend(_raw("checks.json", b"[" * 100 + b"]" * 100)),
        ("checks.json: its lists and tables lie more than 64 deep",),
    ),
    "many values": Case(
        "A list has a million values.",
        _then_mend(_raw("checks.json", b"[" + b"0," * 1_000_000 + b"0]")),
        ("checks.json: it holds more than 500,000 values",),
    ),
    "many mistakes": Case(
        "A list has a hundred thousand values, none of them right.",
        _then_mend(_raw("checks.json", b"[" + b"0," * 100_000 + b"0]")),
        ("100,001 of its values are none that it may have",),
    ),
    "twice": Case(
        "A table names a key twice.",
        _then_mend(_in("measurement.json", '"speedup": 2.0', '"speedup": 9.0, "speedup": 2.0')),
        ("measurement.json: it names 'speedup' twice",),
    ),
    "no JSON": Case(
        "A record is no JSON.", _then_mend(_raw("seeds.json", b"{")), ("seeds.json: it is not JSON",)
    ),
    "no UTF-8 in JSON": Case(
        "A record is not UTF-8.", _then_mend(_raw("seeds.json", b'"\xff"')), ("seeds.json: it is not UTF-8",)
    ),
    "no UTF-8": Case(
        "The source is not UTF-8.",
        _then_mend(_raw("candidate.py", b"\xff")),
        ("candidate.py: it is not UTF-8",),
    ),
    "no record": Case(
        "A record is a list.",
        _then_mend(_raw("verdict.json", b"[]")),
        ("attempt 17 is none that kernelproof writes",),
    ),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_it_is_named(case: Case, tmp_path: Path) -> None:
    path = tmp_path / "forged.bundle"
    path.write_bytes(forging.zipped(case.forge(forging.members(forging.attempt()))))
    lines = forging.told(path)
    for words in case.named:
        assert any(words in line for line in lines), f"{case.mechanism}: {words!r} is not in {lines}"
    assert all("\n" not in line and len(line) < 400 for line in lines)


def test_a_sound_bundle_shows_nothing(tmp_path: Path) -> None:
    path = tmp_path / "sound.bundle"
    write_bundle([forging.attempt(), forging.failed(18)], path)
    assert forging.told(path) == []


def test_a_status_that_is_made_correct_meets_its_failed_check(tmp_path: Path) -> None:
    path = tmp_path / "forged.bundle"
    members = _then_mend(_set("verdict", status="correct"))(forging.members(forging.failed()))
    path.write_bytes(forging.zipped(members))
    assert forging.told(path) == [
        "attempt 17: the verdict is correct, but a check failed ('values: drawn') and no flag says so"
    ]


def test_who_edits_everything_alike_leaves_no_trace(tmp_path: Path) -> None:
    """As docs/guide/reproduce.md says, only a run finds this one."""
    path = tmp_path / "forged.bundle"
    path.write_bytes(forging.zipped(forging.members(forging.attempt(speedup=20.0))))
    assert forging.told(path) == []
