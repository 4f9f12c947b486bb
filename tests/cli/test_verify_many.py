"""`verify` on a folder and on a file of lines: each once, kept as it comes, taken up where it stopped."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from kernelproof.types import Status
from tests.cli import material
from tests.cli.material import QUICK
from tests.cli.program import Program
from tests.providers.server import completion


def put(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def kinds(folder: Path) -> dict[str, Status]:
    """A folder with a candidate of several ends, the same right one twice; what each ends as."""
    put(folder / "level1/1_relu/right.py", material.right())
    put(folder / "level1/1_relu/same.py", material.right())
    put(folder / "level1_1_answer.md", material.fenced(material.wrong()))
    put(folder / "relu/prose.txt", "Kernels are nice.\n")
    return {
        "level1/1_relu/right.py": Status.CORRECT,
        "level1/1_relu/same.py": Status.CORRECT,
        "level1_1_answer.md": Status.WRONG_OUTPUT,
        "relu/prose.txt": Status.NO_CODE,
    }


def found(stdout: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in stdout.splitlines()]


@pytest.mark.slow
def test_a_folder_is_verified_once(program: Program, suite: Path, tmp_path: Path) -> None:
    folder = tmp_path / "given"
    expected = kinds(folder)
    command = ("verify", folder, "--suite", suite, *QUICK)
    first = program.run(*command, code=1)
    assert all(f"{name}  {status}\n" in first.stdout for name, status in expected.items())
    assert f"4 candidates in {program.workspace}/db/attempts.sqlite\n     2  correct\n" in first.stdout
    assert Counter(program.statuses().values()) == Counter(expected.values())
    assert {a.run.kind for a in program.attempts()} == {"verify"}
    assert program.left_after() == {} and program.scratch() == []

    second = program.run(*command, code=1)
    assert "4 of them were kept before (--again verifies them anew)" in second.stdout
    assert len(program.attempts()) == 4

    put(folder / "level1_1_answer.md", material.fenced(material.right()))
    (folder / "relu/prose.txt").unlink()
    doubted = next(a.verdict for a in program.attempts() if a.status is Status.CORRECT)
    assert doubted is not None
    with program.store() as store:
        store.retract(doubted.id, "doubted")
    third = found(program.run(*command, "--json", code=0).stdout)
    assert {(one["id"], one["status"], one["problem"]) for one in third} == {
        ("level1/1_relu/right.py", "correct", "level1/1"),
        ("level1/1_relu/same.py", "correct", "level1/1"),
        ("level1_1_answer.md", "correct", "level1/1"),
    }
    assert [one["kept"] for one in third] == [True, False, False]
    stored = {a.id: a for a in program.attempts()}
    assert len(stored) == 6
    for one in third:
        assert stored[one["attempt"]].status == one["verification"]["status"] == "correct"


@pytest.mark.ci
def test_again_verifies_anew_and_the_newest_counts(program: Program, suite: Path, tmp_path: Path) -> None:
    put(tmp_path / "given" / "prose.txt", "Kernels are nice.\n")
    command = ("verify", tmp_path / "given", "--problem", "relu", "--suite", suite, *QUICK, "--json")
    runs = [found(program.run(*command, *more, code=1).stdout) for more in ((), ("--again",), ())]
    assert [(one["attempt"], one["kept"]) for (one,) in runs] == [(1, False), (2, False), (2, True)]
    other_trials = [2 if word == "1" else word for word in command]
    other = found(program.run(*other_trials, code=1).stdout)
    assert [(one["attempt"], one["kept"]) for one in other] == [(3, False)]
    nothing = found(program.run(*command, "--no-store", code=1).stdout)
    assert [(one["attempt"], one["kept"], one["verification"]) for one in nothing] == [(None, False, None)]
    assert len(program.attempts()) == 3


@pytest.mark.slow
def test_lines_and_the_fastest_of_them(program: Program, suite: Path, tmp_path: Path) -> None:
    recorded = {"problem": "level1/2", "backend": "cpp", "sample": 0, "turn": 1}
    given = [
        {"problem": "relu", "response": "Kernels are nice.", "id": "mine"},
        {**recorded, "response": completion(material.fenced(material.sines()))},
    ]
    file = tmp_path / "given.jsonl"
    file.write_text("".join(json.dumps(one) + "\n" for one in given))
    options = ("--backend", "cpp", "--trials", "1", "--seconds", "0.3", "--rigor", "quick")
    # On a busy machine the two clocks may be apart, and then nothing is claimed: any code.
    first = program.run("verify", file, "--suite", suite, *options, code=None).stdout
    attempts = {a.key.problem_id: a for a in program.attempts()}
    assert f"mine  {attempts['level1/1'].status}\n" in first
    assert f"given.jsonl:2  {attempts['level1/2'].status}\n" in first
    table = (line.split() for line in first.splitlines() if line.rstrip().endswith(("#1", "#2")))
    rows = {row[0]: row[1:] for row in table}
    correct = {a.id for a in attempts.values() if a.status is Status.CORRECT}
    assert {int(row[-1][1:]) for row in rows.values()} == correct
    for row in rows.values():
        verdict = attempts[row[0]].verdict
        assert verdict is not None and verdict.verification.measurement is not None
        assert row[1] == f"{verdict.verification.measurement.speedup:.3f}"
    second = found(program.run("verify", file, "--suite", suite, *options, "--json", code=None).stdout)
    assert {one["id"]: (one["attempt"], one["kept"]) for one in second} == {
        "mine": (attempts["level1/1"].id, True),
        "given.jsonl:2": (attempts["level1/2"].id, True),
    }


@pytest.mark.parametrize("command", ["verify", "import"])
def test_links_out_of_the_folder_are_refused(
    program: Program, suite: Path, tmp_path: Path, command: str
) -> None:
    put(tmp_path / "given" / "prose.txt", "Kernels are nice.\n")
    put(tmp_path / "secret.py", material.right() + "PASSWORD = 'hunter2'\n")
    (tmp_path / "given" / "link.py").symlink_to(tmp_path / "secret.py")
    given = (tmp_path / "given", "--problem", "relu", "--suite", suite, *QUICK)
    done = program.run(command, *given, code=None)
    assert "--follow-links reads it): link.py\n" in done.stdout + done.stderr
    assert [attempt.status for attempt in program.attempts()] == [Status.NO_CODE]
