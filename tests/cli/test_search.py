"""Searches as a person runs them: what is built on what, what is shown, and that a kill changes nothing."""

from __future__ import annotations

import json
import random
import subprocess
from collections import Counter
from contextlib import suppress
from pathlib import Path

import pytest

from kernelproof.db.views import StoredAttempt
from kernelproof.runs.strategies import Proposal, Result, Rounds, Task, find_strategy
from kernelproof.types import Status
from tests.cli import material
from tests.cli.conftest import working_in
from tests.cli.material import answer, fenced
from tests.cli.program import Program, kill
from tests.faultserver import start

TIMED = ("--backend", "cpp", "--trials", 1, "--rigor", "quick", "--seconds", 0.5)
UNTIMED = ("--backend", "cpp", "--trials", 1, "--no-measure")


def by_turn(program: Program) -> dict[int, StoredAttempt]:
    return {attempt.key.turn: attempt for attempt in program.attempts()}


def parents(attempts: dict[int, StoredAttempt]) -> dict[int, int | None]:
    """Of each turn the turn that it was built on."""
    turns = {attempt.id: turn for turn, attempt in attempts.items()}
    return {
        turn: turns[attempt.parent_id] if attempt.parent_id else None for turn, attempt in attempts.items()
    }


def claimed(attempt: StoredAttempt) -> float:
    """By the screening, which is what a search goes by."""
    screening = attempt.verifications[0].verification
    assert screening.settings.bar is not None and screening.measurement is not None
    return screening.measurement.claimed


def rank(attempt: StoredAttempt) -> tuple[float, int]:
    timed = attempt.status is Status.CORRECT
    return (claimed(attempt) if timed else 0.0), -attempt.id


@pytest.mark.ci
def test_refine_goes_on_after_a_correct_answer(program: Program, suite: Path, tmp_path: Path) -> None:
    slow = "float input = value; for (int n = 0; n < 3; ++n) { value = input + 0.0f * value; "
    slow += "for (int k = 0; k < 40; ++k) value = std::sin(value); }"
    answers: material.Answers = {
        ("level1/2", 0, 1): answer(fenced(material.uncompilable())),
        ("level1/2", 0, 2): answer(fenced(material.candidate("slow", slow))),
        ("level1/2", 0, 3): answer(f"<think>\nsecret\n</think>\nDo it once.\n{fenced(material.sines())}"),
        ("level1/2", 0, 4): answer("Vectorise it.\n" + fenced(material.uncompilable("another"))),
        ("level1/2", 0, 5): answer(fenced(material.sines("again"))),
    }
    file = material.recording(tmp_path / "refine.jsonl", answers)
    command = ("generate", "level1/2", "--suite", suite, "--model", f"replay:{file}", *TIMED)
    command += ("--turns", 5, "--strategy", "refine")
    program.run(*command)
    found = by_turn(program)
    best = max((found[2], found[3]), key=claimed)
    assert parents(found) == {1: None, 2: 1, 3: 2, 4: best.key.turn, 5: 4}
    asked = found[4].prompt
    assert asked is not None and asked.template == "basic-v4"
    assert "The program is correct." in asked.user and "the reference takes" in asked.user
    assert [role for role, _ in asked.history] == ["user", "assistant"]
    assert all("secret" not in text for _, text in asked.history)
    screening = best.verifications[0].verification
    assert not [seed for seed in screening.seeds.values() if str(seed) in asked.user]
    before = program.attempts()
    again = [attempt for attempt in before if len(attempt.verifications) == 2]
    assert [attempt.id for attempt in again] == [max(before[1:], key=rank).id]
    assert again[0].verdict is not None and again[0].verdict.verification.settings.bar is None
    program.run(*command)
    assert program.attempts() == before
    tree = program.run("show", "last", "--tree").stdout
    assert tree.count("#") == 6 and tree.count("  best") == 1 and "strategy refine" in tree
    assert f"best #{again[0].id}, verified again at quick" in tree
    board = json.loads(program.run("leaderboard", "--json").stdout)
    assert [problem["best"]["attempt_id"] for problem in board["problems"]] == [again[0].id]


def evolve(suite: Path, url: str, turns: int, *settings: object) -> tuple[object, ...]:
    command = ("generate", "level1/1", "--suite", suite, "--model", "openai:any", "--base-url", url)
    return (*command, *settings, "--turns", turns, "--strategy", "evolve")


def interrupt(program: Program, command: tuple[object, ...], kills: int, longest_s: float) -> None:
    """Starts the command and kills it at a random moment, so many times; then lets it end."""
    generator = random.Random(kills)
    for _ in range(kills):
        process = program.start(*command)
        with suppress(subprocess.TimeoutExpired):
            process.wait(generator.uniform(1.0, longest_s))
        kill(process)
    program.run(*command, seconds=1800)


@pytest.mark.ci
@pytest.mark.parametrize(("turns", "kills"), [(16, 3), pytest.param(60, 10, marks=pytest.mark.slow)])
def test_a_killed_evolve_run_makes_the_attempts_that_it_would_have_made(
    program: Program, suite: Path, tmp_path: Path, turns: int, kills: int
) -> None:
    text = tmp_path / "answer.md"
    text.write_text(fenced(material.uncompilable("broken_@KEY@")))
    with start(answer=text, delay_s=0.2) as server:
        command = evolve(suite, server.url, turns, *UNTIMED)
        with working_in(tmp_path / "undisturbed", program.cache) as other:
            other.extra = program.extra = {"OPENAI_API_KEY": "none"}
            other.run(*command)
            whole = by_turn(other)
        alone = Counter(server.counts()["asked"])
        interrupt(program, command, kills, 4.0)
        asked = Counter(server.counts()["asked"])
    found = by_turn(program)
    assert parents(found) == parents(whole) and len(found) == turns
    assert len(set(parents(found).values())) > 3
    assert [found[turn].source for turn in found] == [whole[turn].source for turn in found]
    assert {attempt.status for attempt in found.values()} == {Status.BUILD_ERROR}
    assert all(len(attempt.responses) == 1 for attempt in found.values())
    # An answer is lost only between the server's last byte and the store's commit, by a kill.
    again = sum((asked - alone).values()) - turns
    assert set(asked) == set(alone) and 0 <= again <= 2 * kills


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_a_killed_search_for_speed_has_asked_what_its_results_lead_to(
    program: Program, suite: Path, tmp_path: Path
) -> None:
    text = tmp_path / "answer.md"
    text.write_text(fenced(material.right("right_@KEY@")))
    program.extra = {"OPENAI_API_KEY": "none"}
    with start(answer=text, delay_s=0.2) as server:
        interrupt(program, evolve(suite, server.url, 12, *TIMED), 10, 40.0)
        asked = server.counts()["asked"]
    asked.pop("", None)  # long prompts: the server was asked how long its model's context is
    found = by_turn(program)
    assert len(found) == 12 and Status.CORRECT in {attempt.status for attempt in found.values()}
    assert all(len(each.responses) == 1 for each in found.values())
    # Each is screened once, and the best is verified once more.
    assert sorted(len(each.verifications) for each in found.values()) == [1] * 11 + [2]
    assert len(asked) == 12 and sum(asked.values()) <= 12 + 2 * 10
    (best,) = (each for each in found.values() if len(each.verifications) == 2)
    assert best.id == max(found.values(), key=rank).id, "what the search went by decides, killed or not"
    first = found[1]
    task = Task(first.problem, "cpp", 0, 12)
    rounds = Rounds(find_strategy("evolve")(task), 12)
    while proposals := rounds.ask():
        built_on = parents(found)
        assert {turn: built_on[turn] for turn in proposals} == {t: p.parent for t, p in proposals.items()}
        rounds.tell([result(found[turn], proposal) for turn, proposal in proposals.items()])
    assert rounds.is_last


def result(attempt: StoredAttempt, proposal: Proposal) -> Result:
    """What the strategy was told of a stored attempt."""
    verdict = attempt.verifications[0].verification
    interval = verdict.measurement.claimed_interval if verdict.measurement else None
    return Result(proposal, attempt.key.turn, verdict.status, verdict, attempt.source, interval)


@pytest.mark.ci
def test_a_retracted_program_is_verified_again_before_anything_is_built_on_it(
    program: Program, suite: Path, tmp_path: Path
) -> None:
    answers: material.Answers = {
        ("level1/1", 0, 1): answer(fenced(material.right())),
        ("level1/1", 0, 3): answer("never asked for"),
    }
    file = material.recording(tmp_path / "retracted.jsonl", answers)
    command = ("generate", "level1/1", "--suite", suite, "--model", f"replay:{file}", *TIMED)
    command += ("--turns", 2, "--strategy", "refine")
    program.run(*command, code=3)  # the second question has no answer yet
    program.run("runs", "retract", 1, "--reason", "a trick that no check sees")
    assert "#1 turn 1  retracted" in program.run("show", 1, "--tree").stdout
    material.recording(file, {**answers, ("level1/1", 0, 2): answer("no code")})
    program.run(*command)
    first, second = program.attempts()
    # The last one is the second verification of the best.
    assert [each.retracted is None for each in first.verifications] == [False, True, True]
    again = first.verifications[1].verification.measurement
    assert again is not None and second.prompt is not None and second.parent_id == first.id
    assert f"The speedup is {again.speedup:.4g}x" in second.prompt.user
