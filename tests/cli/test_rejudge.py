"""`rejudge`: stored answers under other settings; nothing is asked, nothing is judged twice."""

from __future__ import annotations

import json
from pathlib import Path

from kernelproof.types import Status
from tests.cli import material
from tests.cli.material import answer, fenced
from tests.cli.program import Program

QUICK = ("--backend", "cpp", "--no-measure", "--trials", "1")


def filled(program: Program, suite: Path, folder: Path) -> None:
    file = material.recording(
        folder / "answers.jsonl",
        {
            ("level1/1", 0, 1): answer(fenced(material.right())),
            ("level1/1", 1, 1): answer(fenced(material.wrong())),
            ("level1/1", 2, 1): answer("no code"),
        },
    )
    command = ("generate", "level1/1", "--suite", suite, "--model", f"replay:{file}", "--samples", 3)
    program.run(*command, *QUICK, "--run", "night")
    file.unlink()


def test_stored_answers_are_judged_under_other_settings(
    program: Program, suite: Path, tmp_path: Path
) -> None:
    filled(program, suite, tmp_path)
    done = program.run("rejudge", "night", "--trials", 2)
    assert "2 attempts judged" in done.stdout and "1 answer without a program" in done.stdout
    for attempt in program.attempts():
        trials = [v.verification.settings.trials for v in attempt.verifications]
        assert trials == ([] if attempt.status is Status.NO_CODE else [1, 2])
    again = program.run("rejudge", "night", "--trials", 2, "--json")
    found = json.loads(again.stdout.splitlines()[-1])
    assert found["kept"] == 2 and found["changed"] == {}
    assert sum(len(a.verifications) for a in program.attempts()) == 4
    program.run("rejudge", "1", "--trials", 2, "--again")
    assert sum(len(a.verifications) for a in program.attempts()) == 6


def test_what_makes_no_sense_is_said_before_anything_runs(
    program: Program, suite: Path, tmp_path: Path
) -> None:
    filled(program, suite, tmp_path)
    assert "no run 'day'" in program.run("rejudge", "day", code=2).stderr
    assert "leave out --backend" in program.run("rejudge", "night", "--backend", "cuda", code=2).stderr
    assert "--trials" in program.run("rejudge", "night", "--trials", 0, code=2).stderr
    assert sum(len(a.verifications) for a in program.attempts()) == 2


def test_a_retraction_and_its_end(program: Program, suite: Path, tmp_path: Path) -> None:
    filled(program, suite, tmp_path)
    number = next(a.id for a in program.attempts() if a.status is Status.CORRECT)
    done = program.run("retract", number, "--reason", "the fan was off")
    assert done.stdout == f"attempt {number}: 1 verification retracted\n"
    assert "nothing to do" in program.run("retract", number, "--reason", "so").stdout
    assert "retracted: the fan was off" in program.run("show", number).stdout
    program.run("retract", number, "--reason", "it was on", "--undo")
    with program.store() as store:
        assert store.leaderboard().models[0].correct == 1
    assert (
        "has no verification 99"
        in program.run("retract", number, "--reason", "x", "--verification", 99, code=2).stderr
    )
