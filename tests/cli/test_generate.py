"""`generate`: every kind of answer gets its status, and the same command again does only what is left."""

from __future__ import annotations

from pathlib import Path

import pytest

from kernelproof.types import Status
from tests.cli import material
from tests.cli.material import QUICK, answer, fenced
from tests.cli.program import Program
from tests.providers.server import Step, failure, serve

KEY = "sk-test-0123456789"

MIXED: material.Answers = {
    ("level1/1", 0, 1): answer(fenced(material.right())),
    ("level1/1", 1, 1): answer(fenced(material.wrong())),
    ("level1/1", 1, 2): answer(fenced(material.right())),
    ("level1/1", 2, 1): answer(fenced(material.uncompilable())),
    ("level1/1", 3, 1): answer(fenced(material.right()).split("static PyMethodDef")[0], "length"),
    ("level1/1", 4, 1): answer("I would rather talk about the weather."),
    ("level1/1", 5, 1): answer(fenced(material.right().replace("def forward(self, x):", "def forward(self"))),
}
STATUSES = {
    ("level1/1", 0, 1): Status.CORRECT,
    ("level1/1", 1, 1): Status.WRONG_OUTPUT,
    ("level1/1", 1, 2): Status.CORRECT,
    ("level1/1", 2, 1): Status.BUILD_ERROR,
    ("level1/1", 3, 1): Status.TRUNCATED,
    ("level1/1", 4, 1): Status.NO_CODE,
    ("level1/1", 5, 1): Status.SYNTAX_ERROR,
    ("level1/1", 6, 1): Status.PROVIDER_ERROR,
}


@pytest.mark.ci
def test_every_kind_of_answer(program: Program, suite: Path, tmp_path: Path) -> None:
    file = material.recording(tmp_path / "mixed.jsonl", MIXED)
    command = ("generate", "level1/1", "--suite", suite, "--model", f"replay:{file}", "--samples", 7)
    command += ("--turns", 2, *QUICK)
    done = program.run(*command, code=3)  # the recording holds no answer to one question
    assert program.statuses() == STATUSES
    assert "8 attempts" in done.stdout and "2  correct" in done.stdout
    assert "level1/1     sample 2 turn 1  build_error" in done.stdout
    attempts = {(a.key.sample, a.key.turn): a for a in program.attempts()}
    assert attempts[1, 2].parent_id == attempts[1, 1].id
    assert attempts[1, 2].prompt is not None and "wrong" in attempts[1, 2].prompt.user
    assert attempts[0, 1].source == material.right()
    error = attempts[6, 1].responses[-1].error
    assert error is not None and "holds no answer" in error
    folder = program.workspace / "generated" / "level1" / "1"
    right = folder / f"{attempts[0, 1].id}-sample0-turn1"
    assert sorted(path.name for path in right.iterdir()) == [
        "candidate.py",
        "response.md",
        "verification.json",
    ]
    assert (right / "candidate.py").read_text() == material.right()
    assert len(list(folder.iterdir())) == len(STATUSES) - 1  # nothing came of one question
    assert program.left_after() == {} and program.scratch() == []
    program.run(*command, code=3)
    again = {(a.key.sample, a.key.turn): a for a in program.attempts()}
    assert len(again.pop((6, 1)).responses) == 2  # what the provider could not answer, it is asked again
    assert again == {key: attempt for key, attempt in attempts.items() if key != (6, 1)}


def model(program: Program, url: str) -> tuple[object, ...]:
    program.extra = {"OPENAI_API_KEY": KEY}
    return ("--model", "openai:test", "--base-url", url, *QUICK)


@pytest.mark.ci
def test_no_question_is_asked_twice(program: Program, suite: Path) -> None:
    with serve(Step(answer("no code today"))) as server:
        command = ("generate", "level1/1", "--suite", suite, *model(program, server.url))
        program.run(*command, "--samples", 2)
        assert len(server.requests) == 2
        first = program.attempts()
        again = program.run(*command, "--samples", 2)
        assert len(server.requests) == 2 and program.attempts() == first
        assert "2  no_code" in again.stdout
        program.run(*command, "--samples", 3)
        assert len(server.requests) == 3
        assert program.statuses() == {("level1/1", n, 1): Status.NO_CODE for n in range(3)}
        program.run(*command, "--samples", 1, "--run", "another")
        assert len(server.requests) == 4
        assert {a.run.name for a in program.attempts()} == {None, "another"}
    assert server.authorizations == [f"Bearer {KEY}"] * 4


def test_a_server_that_failed_is_asked_again(program: Program, suite: Path) -> None:
    trouble = [failure(500)] * 3  # the client itself tries three times
    with serve(*trouble, Step(answer("no code today"))) as server:
        command = ("generate", "level1/1", "--suite", suite, *model(program, server.url))
        first = program.run(*command, code=3)
        assert program.statuses() == {("level1/1", 0, 1): Status.PROVIDER_ERROR}
        assert "run the same command again" in first.stdout
        program.run(*command)
        assert program.statuses() == {("level1/1", 0, 1): Status.NO_CODE}
        assert len(server.requests) == 4
    assert [r.error is None for r in program.attempts()[0].responses] == [False, True]


@pytest.mark.parametrize(
    "status, hint", [(401, "OPENAI_API_KEY"), pytest.param(404, "model's name", marks=pytest.mark.ci)]
)
def test_a_server_that_refuses_ends_the_run_and_what_was_stored_stays(
    program: Program, suite: Path, status: int, hint: str
) -> None:
    with serve(Step(answer("no code today")), failure(status), Step(answer("nor now"))) as server:
        command = ("generate", "level1/1", "--suite", suite, *model(program, server.url))
        command += ("--samples", 2, "--concurrency", 1)
        done = program.run(*command, code=3)
        assert done.stderr.startswith("kernelproof: openai:test: ") and hint in done.stderr
        assert done.stderr.count("\n") == 1
        assert KEY not in done.stdout + done.stderr
        assert sum(a.response is not None for a in program.attempts()) == 1
        program.run(*command)
        assert set(program.statuses().values()) == {Status.NO_CODE}
        assert len(server.requests) == 3


@pytest.mark.ci
def test_recorded_answers_play_again_as_the_same(program: Program, suite: Path, tmp_path: Path) -> None:
    file = tmp_path / "recorded.jsonl"
    with serve(Step(answer(fenced(material.right())))) as server:
        program.run("generate", "level1/1", "--suite", suite, *model(program, server.url), "--record", file)
    program.extra = {}
    program.run("generate", "level1/1", "--suite", suite, "--model", f"replay:{file}", *QUICK)
    live, played = program.attempts()
    assert (live.source, live.status) == (played.source, played.status) == (material.right(), Status.CORRECT)
    assert live.run.model == "openai:test" and played.run.model == f"replay:{file}"


def test_a_dry_run_asks_and_stores_nothing(program: Program, suite: Path) -> None:
    with serve(Step(answer("never asked"))) as server:
        command = ("generate", "all", "--suite", suite, *model(program, server.url))
        options = ("--samples", 3, "--turns", 2, "--rigor", "quick", "--purity", "own-compute")
        done = program.run(*command, *options, "--dry-run")
    assert server.requests == [] and list(program.workspace.iterdir()) == []
    assert "questions  6, at most 6 more as answers fail\n" in done.stdout
    assert "rules      numerics fp32, purity own-compute, rigor quick\n" in done.stdout
