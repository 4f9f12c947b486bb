"""Scorer: a number and a text for each program, each verified once, and none where the machine failed."""

from __future__ import annotations

import builtins
import multiprocessing
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kernelproof import Scorer
from kernelproof.db.attempts import Finished
from kernelproof.db.store import open_store
from kernelproof.errors import MachineError, UsageError
from kernelproof.jobs.judge import files_run
from kernelproof.runs.candidates import candidate_from_text
from kernelproof.types import Status
from kernelproof.verifier.engine.engine import Engine
from kernelproof.workspace import open_workspace
from tests.cli import material
from tests.db import samples


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory, cache: Path) -> dict[str, Any]:
    """What a scorer of these tests is made with."""
    root = tmp_path_factory.mktemp("scorer")
    suite = material.problems(root / "problems")
    return {"suite": suite, "workspace": root, "cache": cache, "backend": "cpp", "run": "scored"}


@pytest.fixture(scope="module")
def scorer(place: dict[str, Any]) -> Iterator[Scorer]:
    """One for all tests: its referee starts once."""
    with Scorer("relu", rigor="quick", measure_seconds=0.5, trials=1, **place) as made:
        yield made


@pytest.mark.slow
def test_a_correct_program_scores_what_is_claimed_of_it(scorer: Scorer, tmp_path: Path) -> None:
    file = tmp_path / "right.py"
    file.write_text(material.right())
    found = scorer.score(file)
    assert found.verification is not None and found.verification.measurement is not None
    assert found.correct and not found.kept
    assert found.value == found.verification.measurement.claimed > 0
    again = scorer.score(material.right())
    assert again.kept
    assert (again.value, again.attempt_id, again.feedback) == (
        found.value,
        found.attempt_id,
        found.feedback,
    )


def test_what_is_kept_is_not_verified_again_in_a_forked_process_either(
    scorer: Scorer, place: dict[str, Any]
) -> None:
    given = candidate_from_text("a", material.right("kept"), scorer.problem)
    verdict = samples.verification(scorer.problem, speedup=2.0, verify=scorer.settings)
    run = files_run(scorer.settings, place["run"])
    with open_store(open_workspace(place["workspace"]).database) as store:
        number = store.add_finished(
            Finished(run, given.problem, given.response, given.extraction, verdict, Status.CORRECT)
        )
    expected = (2.0 * 0.99, number, True)
    assert facts(scorer) == expected
    fork = multiprocessing.get_context("fork")  # as a search starts its workers
    here, there = fork.Pipe()

    def work() -> None:
        there.send(facts(scorer))
        scorer.close()

    worker = fork.Process(target=work)
    worker.start()
    assert here.poll(60) and here.recv() == expected
    worker.join()


def facts(scorer: Scorer) -> tuple[float, int, bool]:
    """Of the program that is kept."""
    found = scorer.score(material.right("kept"))
    assert "One call takes" in found.feedback and "Answer with the complete file" in found.feedback
    return found.value, found.attempt_id, found.kept


BROKEN = [
    (material.wrong(), Status.WRONG_OUTPUT, "elements wrong"),
    (material.uncompilable(), Status.BUILD_ERROR, "no_such_function"),
    ("I would rather not.", Status.NO_CODE, "status `no_code`"),
]


@pytest.mark.few(1)
@pytest.mark.parametrize(("text", "status", "said"), BROKEN, ids=lambda value: str(value)[:12])
def test_what_is_not_correct_scores_0_and_says_why(
    scorer: Scorer, text: str, status: Status, said: str
) -> None:
    found = scorer.score(text)
    assert (found.value, found.correct, found.status) == (0.0, False, status)
    assert said in found.feedback
    assert scorer.score(text).kept


def test_a_program_runs_nowhere_near_the_caller(scorer: Scorer) -> None:
    text = "import builtins\n\nbuiltins.they_ran_me = True\n" + material.wrong("elsewhere")
    assert scorer.score(text).status is Status.WRONG_OUTPUT
    assert not hasattr(builtins, "they_ran_me")


@pytest.mark.ci
def test_a_failure_of_the_machine_is_no_score_and_is_not_kept(
    scorer: Scorer, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = material.wrong("unlucky")
    ours = Engine.verify

    def lost(*given: Any) -> Any:
        full = {"status": Status.INFRASTRUCTURE_ERROR, "reason": "the disk is full"}
        return ours(*given).model_copy(update=full)

    with monkeypatch.context() as patch:
        patch.setattr(Engine, "verify", lost)
        with pytest.raises(MachineError, match="has no score: the disk is full"):
            scorer.score(text)
    found = scorer.score(text)
    assert found.status is Status.WRONG_OUTPUT and not found.kept


BAD: list[tuple[dict[str, Any], str]] = [
    ({"measure": False}, "leave measure on"),
    ({"rigour": "quick"}, "there is no rigour; did you mean rigor?"),
    ({"workspace": "gone"}, "gone"),
]


@pytest.mark.parametrize(("arguments", "message"), BAD)
def test_arguments_that_make_no_sense(place: dict[str, Any], arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        Scorer("relu", **{**place, **arguments})


def test_the_prompt_is_the_problems_first_question(scorer: Scorer) -> None:
    assert "class Model(nn.Module)" in scorer.prompt.user
    assert "ModelNew" in scorer.prompt.system + scorer.prompt.user
