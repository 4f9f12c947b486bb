"""The test bed with real kernels: sources from choices, and a model that reads questions as they are sent."""

from __future__ import annotations

import ast
import json
import os
import subprocess
import sys
import urllib.request
from dataclasses import replace
from pathlib import Path
from typing import Any

import anyio
import pytest

from benchmarks.search.editor import Editor, planned, served
from benchmarks.search.kernels import KERNELS, LEVELS, MISTAKES, points, read
from benchmarks.search.proposer import STRONG, Program
from kernelproof import Submission, Verifier, backends
from kernelproof.extraction import read_plans
from kernelproof.extraction.normalise import normalized_hash
from kernelproof.problems import open_suite
from kernelproof.prompting import first_prompt, plan_prompt, plans_prompt
from kernelproof.providers.protocol import messages
from kernelproof.types import Response, Severity, Status
from kernelproof.verifier.policy import review

BACKEND = next(name for name in backends.names() if not backends.backend(name).on_gpu)
POINT = (2, 1, 2, 3, 1)
SURE = replace(STRONG, seen={Status.CORRECT: 1})


def test_every_point_is_another_program_that_can_be_read_back() -> None:
    for problem in KERNELS.values():
        seen = set()
        for point in points():
            source = problem.source(Program(point, 7))
            assert "@" not in source
            assert read(source) == Program(point, 7)
            seen.add(source)
        assert len(seen) == len(list(points()))


@pytest.mark.parametrize("problem_id", KERNELS)
def test_a_program_passes_the_policy_and_a_mistake_is_in_its_code(problem_id: str) -> None:
    kernel, problem = KERNELS[problem_id], open_suite().find(problem_id)
    right = kernel.source(Program(POINT, 1))
    errors = [each for each in review(right, problem, BACKEND) if each.severity is Severity.ERROR]
    assert errors == []
    for mistake in MISTAKES:
        broken = kernel.source(Program(POINT, 1, mistake))
        assert normalized_hash(broken) != normalized_hash(right)
        assert read(broken) == Program(POINT, 1, mistake)
        if mistake is not Status.SYNTAX_ERROR:
            ast.parse(broken)


@pytest.mark.slow
@pytest.mark.parametrize("problem_id", KERNELS)
def test_programs_are_judged_as_they_are_written(problem_id: str, cache: Path) -> None:
    kernel, forms = KERNELS[problem_id], range(LEVELS[0])
    right = [Program((form, 1, 1, form, form % 2), 1) for form in forms]
    broken = [Program(POINT, 1, mistake) for mistake in MISTAKES]

    async def main() -> dict[str, Status]:
        given = [Submission(kernel.source(each), problem_id) for each in (*right, *broken)]
        async with Verifier(backend=BACKEND, cache=cache, trials=1, measure=False) as verifier:
            return {
                str(result.candidate.source): result.verification.status
                async for result in verifier.verify_many(given)
            }

    found = anyio.run(main)
    for each in (*right, *broken):
        assert found[kernel.source(each)] is (each.mistake or Status.CORRECT)


def test_it_plans_and_carries_out_what_it_planned() -> None:
    problem, facts = open_suite().find("level2/10"), {"backend": BACKEND, "size": "small"}
    first, editor = first_prompt(problem, **facts), Editor(SURE, 0)  # type: ignore[arg-type]
    about: dict[str, Any] = {**facts, "template": "basic-v4", "first": first}
    written = Response(text=editor.answer(messages(plans_prompt(problem, **about, count=4))))
    plans = read_plans(written)
    assert len(plans) == 4 and len({plan.title for plan in plans}) == 4
    for plan in plans:
        asked = messages(plan_prompt(problem, **about, plan=plan))
        choices = planned(asked[-1]["content"])
        assert choices is not None and len(choices) == 2
        program = read(editor.answer(asked))
        assert program is not None and {i: program.point[i] for i in choices} == choices
    assert planned(messages(first)[-1]["content"]) is None


def test_it_answers_over_http_and_counts_tokens() -> None:
    problem = open_suite().find("level1/18")
    asked = messages(first_prompt(problem, backend=BACKEND, size="small"))
    with served(Editor(STRONG, 0)) as url:
        request = urllib.request.Request(
            f"{url}/chat/completions",
            json.dumps({"model": "editor", "messages": asked}).encode(),
            {"content-type": "application/json"},
        )
        with urllib.request.urlopen(request, timeout=30) as answer:
            body = json.load(answer)
    assert read(body["choices"][0]["message"]["content"]) is not None
    assert body["usage"]["prompt_tokens"] > 500 > 0 < body["usage"]["completion_tokens"]


@pytest.mark.slow
@pytest.mark.timeout(1200)
def test_the_comparison_asks_generate_and_measures_winners_again(tmp_path: Path, cache: Path) -> None:
    command = [
        *(sys.executable, "-m", "benchmarks.search.on_kernels", "--problems", "level1/18", "--seeds", "1"),
        *("--budget", "2", "--strategies", "sample", "refine"),
        *("--seconds", "0.2", "--confirm-seconds", "0.2"),
        *("--workspace", str(tmp_path / "place"), "--json", str(tmp_path / "found.json")),
    ]
    environment = {**os.environ, "KERNELPROOF_CACHE": str(cache)}
    for _ in range(2):  # the second time takes everything from the store
        done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
    records = json.loads((tmp_path / "found.json").read_text())["records"]
    assert [(each["strategy"], each["questions"]) for each in records] == [("sample", 2), ("refine", 2)]
    assert all(each["gain"] > 0 for each in records)
