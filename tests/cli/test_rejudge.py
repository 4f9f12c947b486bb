"""`runs rejudge`: stored answers under other settings; nothing is asked, nothing is judged twice."""

from __future__ import annotations

import json
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from kernelproof.types import Status
from tests.cli import material
from tests.cli.conftest import working_in
from tests.cli.material import QUICK, answer, fenced
from tests.cli.program import Program
from tests.db.scores.filling import UNPACKED

pytestmark = pytest.mark.ci


@pytest.fixture(scope="module")
def one_night(tmp_path_factory: pytest.TempPathFactory, suite: Path, cache: Path) -> Path:
    """A workspace with a batch that was asked and judged."""
    folder = tmp_path_factory.mktemp("night")
    file = material.recording(
        folder / "answers.jsonl",
        {
            ("level1/1", 0, 1): answer(fenced(material.right())),
            ("level1/1", 1, 1): answer(fenced(material.wrong())),
            ("level1/1", 2, 1): answer("no code"),
        },
    )
    command = ("generate", "level1/1", "--suite", suite, "--model", f"replay:{file}", "--samples", 3)
    with working_in(folder / "workspace", cache) as program:
        program.run(*command, *QUICK, "--run", "night")
        file.unlink()
        return program.workspace


@pytest.fixture
def night(program: Program, one_night: Path) -> Program:
    """The program in a copy of it."""
    shutil.copytree(one_night, program.workspace, dirs_exist_ok=True)
    return program


def test_stored_answers_are_judged_under_other_settings(night: Program) -> None:
    done = night.run("runs", "rejudge", "night", "--trials", 2)
    assert "2 attempts judged" in done.stdout and "1 answer without a program" in done.stdout
    for attempt in night.attempts():
        trials = [v.verification.settings.trials for v in attempt.verifications]
        assert trials == ([] if attempt.status is Status.NO_CODE else [1, 2])
    again = night.run("runs", "rejudge", "night", "--trials", 2, "--json")
    found = json.loads(again.stdout.splitlines()[-1])
    assert found["kept"] == 2 and found["changed"] == {}
    assert sum(len(a.verifications) for a in night.attempts()) == 4
    night.run("runs", "rejudge", "1", "--trials", 2, "--again")
    assert sum(len(a.verifications) for a in night.attempts()) == 6


def test_what_is_correct_is_called_under_sanitizers_once(night: Program) -> None:
    assert "1 attempt judged" in night.run("runs", "rejudge", "night", "--sanitize").stdout
    (correct,) = (attempt for attempt in night.attempts() if attempt.status is Status.CORRECT)
    newest = correct.verifications[-1].verification
    checks = [check.seen for check in newest.checks if check.name.startswith("sanitizer: ")]
    assert checks == ["clean, at the declared size"] and newest.flags == ()
    assert "sanitizers  address, undefined: clean" in night.run("show", correct.id).stdout
    again = night.run("runs", "rejudge", "night", "--sanitize", "--json")
    assert json.loads(again.stdout.splitlines()[-1])["kept"] == 1


def test_what_makes_no_sense_is_said_before_anything_runs(night: Program) -> None:
    assert "no run 'day'" in night.run("runs", "rejudge", "day", code=2).stderr
    assert "leave out --backend" in night.run("runs", "rejudge", "night", "--backend", "cuda", code=2).stderr
    assert "--trials" in night.run("runs", "rejudge", "night", "--trials", 0, code=2).stderr
    assert sum(len(a.verifications) for a in night.attempts()) == 2


def test_what_is_stale_is_judged_again_as_it_was(night: Program) -> None:
    with closing(sqlite3.connect(night.workspace / "db" / "attempts.sqlite")) as connection, connection:
        connection.execute("DROP TRIGGER verifications_no_update")
        connection.execute("UPDATE verifications SET policy = 'old', verifier = '0.1 policy:old'")
        connection.executescript(UNPACKED)
    assert "2 attempts stale" in night.run("leaderboard").stdout
    assert "needs a run" in night.run("runs", "rejudge", code=2).stderr
    assert "2 attempts judged" in night.run("runs", "rejudge", "--stale").stdout
    for attempt in night.attempts():
        trials = [v.verification.settings.trials for v in attempt.verifications]
        assert trials == ([] if attempt.status is Status.NO_CODE else [1, 1])
    assert "stale" not in night.run("leaderboard").stdout
    assert "nothing is stale" in night.run("runs", "rejudge", "night", "--stale").stdout


def test_a_retraction_and_its_end(night: Program) -> None:
    number = next(a.id for a in night.attempts() if a.status is Status.CORRECT)
    done = night.run("runs", "retract", number, "--reason", "the fan was off")
    assert done.stdout == f"attempt {number}: 1 verification retracted\n"
    assert "nothing to do" in night.run("runs", "retract", number, "--reason", "so").stdout
    assert "retracted: the fan was off" in night.run("show", number, "--all").stdout
    night.run("runs", "retract", number, "--reason", "it was on", "--undo")
    with night.store() as store:
        assert store.scores.leaderboard().models[0].correct.part == 1
    assert (
        "has no verification 99"
        in night.run("runs", "retract", number, "--reason", "x", "--verification", 99, code=2).stderr
    )
