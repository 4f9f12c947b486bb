"""The strategy `ideas` as a person runs it: its plans are stored, shown, named in the tree, not counted."""

from __future__ import annotations

import json
import subprocess
from contextlib import suppress
from pathlib import Path

import pytest

from kernelproof.types import Status
from tests.cli import material
from tests.cli.material import answer, fenced
from tests.cli.program import Program, kill
from tests.cli.test_search import TIMED, by_turn, parents
from tests.faultserver import start

PLANS = """<think>## 1. A secret plan</think>
## 1. Fuse \x1b[31meverything [bold]
One pass over memory.

## 2. Vectorise
Eight floats at a time.
"""
AS_IDEAS = ("--strategy", "ideas", "--backend", "cpp")


@pytest.mark.ci
def test_plans_are_carried_out_and_are_no_attempt_at_a_kernel(
    program: Program, suite: Path, tmp_path: Path
) -> None:
    again = fenced(material.right("first"))
    answers: material.Answers = {
        ("level1/1", 0, 1): answer(PLANS),
        ("level1/1", 0, 2): answer(fenced(material.right("first"))),
        ("level1/1", 0, 3): answer(fenced(material.uncompilable())),
        ("level1/1", 0, 4): answer(f"Once more.\n{again}"),
        ("level1/1", 0, 5): answer("no code"),
    }
    file = material.recording(tmp_path / "ideas.jsonl", answers)
    command = ("generate", "level1/1", "--suite", suite, "--model", f"replay:{file}", *TIMED)
    command += ("--strategy", "ideas", "--turns", 5, "--no-race")
    program.run(*command)
    found = by_turn(program)
    assert {turn: (attempt.status, attempt.plan) for turn, attempt in found.items()} == {
        1: (Status.PLANS, None),
        2: (Status.CORRECT, 1),
        3: (Status.BUILD_ERROR, 2),
        4: (Status.CORRECT, 1),
        5: (Status.NO_CODE, None),
    }
    assert parents(found) == {1: None, 2: 1, 3: 1, 4: 1, 5: 2}
    prompts = {turn: attempt.prompt.user for turn, attempt in found.items() if attempt.prompt}
    assert "Give 4 plans for a fast program" in prompts[1] and "secret" not in "".join(prompts.values())
    assert "Vectorise\n\nEight floats at a time." in prompts[3] and "One pass" not in prompts[3]
    assert "Programs that carried out the plan below, so far:\n\n- correct, speedup" in prompts[4]
    one, same = found[2].verifications[0], found[4].verifications[0]
    assert (one.reused_from, same.reused_from) == (None, one.id)
    assert same.verification == one.verification, "the same program is not verified twice"
    before = program.attempts()
    program.run(*command)
    assert program.attempts() == before
    tree = program.run("show", 4, "--tree").stdout
    assert "#1 turn 1  plans  2 plans\n" in tree
    assert tree.count("plan 1 of turn 1: Fuse everything [bold]") == 3
    assert tree.count("plan 2 of turn 1: Vectorise") == 1
    assert "\x1b" not in tree and "plan 1 of #1" in program.run("show", 4).stdout
    board = json.loads(program.run("leaderboard", "--json").stdout)
    (model,) = board["models"]
    assert (model["attempts"], model["samples"], model["correct"]["part"]) == (4, 1, 1)
    program.run("runs", "retract", found[4].id, "--reason", "a trick that no check sees")
    assert [each.retracted is None for turn in (2, 4) for each in by_turn(program)[turn].verifications] == [
        False,
        False,
    ]


def test_a_template_without_words_for_plans_is_refused_before_anything_is_asked(
    program: Program, suite: Path
) -> None:
    command = ("generate", "level1/1", "--suite", suite, "--model", "replay:demo", *AS_IDEAS, "--turns", 3)
    said = program.run(*command, "--template", "basic-v3", code=2).stderr
    assert "template basic-v3 cannot ask for plans" in said and "basic-v4" in said


@pytest.mark.ci
def test_a_killed_search_asks_what_it_would_have_asked(program: Program, suite: Path, tmp_path: Path) -> None:
    text = tmp_path / "answer.md"
    text.write_text(PLANS + fenced(material.uncompilable("broken_@KEY@")))
    program.extra = {"OPENAI_API_KEY": "none"}
    with start(answer=text, delay_s=0.2) as server:
        command = ("generate", "level1/1", "--suite", suite, "--model", "openai:any", *AS_IDEAS)
        command += ("--base-url", server.url, "--no-measure", "--trials", 1, "--turns", 9)
        process = program.start(*command)
        with suppress(subprocess.TimeoutExpired):
            process.wait(3.0)
        kill(process)
        program.run(*command)
    found = by_turn(program)
    assert found[1].status is Status.PLANS and len(found) == 9
    # Each plan, its repairs, and the plan again.
    assert parents(found) == {1: None, 2: 1, 3: 1, 4: 2, 5: 4, 6: 1, 7: 3, 8: 7, 9: 1}
    assert [found[turn].plan for turn in sorted(found)] == [None, 1, 2, None, None, 1, None, None, 2]
    assert all(len(attempt.responses) == 1 for attempt in found.values())


@pytest.mark.ci
def test_an_answer_may_be_a_diff_of_the_program_that_its_question_showed(
    program: Program, suite: Path, tmp_path: Path
) -> None:
    broken = material.uncompilable("first")
    line = next(line for line in broken.splitlines() if line.startswith("import torch"))
    diff = f"```diff\n@@ -1,1 +1,1 @@\n-{line}\n+{line}  # changed\n```"
    answers: material.Answers = {
        ("level1/1", 0, 1): answer(fenced(broken)),
        ("level1/1", 0, 2): answer(diff.replace(f"-{line}", "-import tensorflow")),
        ("level1/1", 0, 3): answer(f"Once more.\n{diff}"),
    }
    file = material.recording(tmp_path / "diff.jsonl", answers)
    command = ("generate", "level1/1", "--suite", suite, "--model", f"replay:{file}", "--backend", "cpp")
    program.run(*command, "--no-measure", "--turns", 3)
    first, unfit, fit = program.attempts()
    reason = (
        "the answer is a diff that does not fit: hunk 1: the line 'import tensorflow' is not in the program"
    )
    assert unfit.status is Status.NO_CODE and unfit.extraction is not None
    assert unfit.extraction.reason == reason
    assert fit.prompt is not None and f"What was seen: {reason}" in fit.prompt.user
    assert fit.extraction is not None and fit.extraction.method == "diff"
    assert fit.source == broken.replace(line, f"{line}  # changed", 1)
    assert (first.status, fit.status) == (Status.BUILD_ERROR, Status.BUILD_ERROR)
