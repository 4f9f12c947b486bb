"""The repair prompt: the conversation so far, and the evidence for each way a turn can end."""

from __future__ import annotations

import pytest

from kernelproof.prompting import Failure, first_prompt, repair_prompt, repair_text
from kernelproof.types import (
    BuildState,
    Check,
    CheckOutcome,
    Extraction,
    Finding,
    Pace,
    Prompt,
    Response,
    Severity,
    Status,
)
from tests.prompting.material import build, errors, measurement, problem, verification


def repaired(failure: Failure, text: str | None = "my answer", previous: Prompt | None = None) -> Prompt:
    return repair_prompt(
        problem(),
        backend="cpp",
        size="small",
        template="basic-v1",
        previous=previous or first_prompt(problem(), backend="cpp", size="small"),
        response=Response(text=text),
        failure=failure,
    )


def test_the_words_alone_are_those_of_the_prompt() -> None:
    failure = Failure(status=Status.RUNTIME_ERROR, details="a lone surrogate: \ud800")
    alone = repair_text(problem(), backend="cpp", size="small", template="basic-v1", failure=failure)
    assert "a lone surrogate" in alone and alone == repaired(failure).user


def test_the_conversation_grows_by_question_and_answer() -> None:
    failure = Failure(status=Status.RUNTIME_ERROR)
    first = first_prompt(problem(), backend="cpp", size="small")
    second = repaired(failure, "one", first)
    third = repaired(failure, "two", second)
    assert second.system == third.system == first.system
    assert second.history == (("user", first.user), ("assistant", "one"))
    assert third.history == (*second.history, ("user", second.user), ("assistant", "two"))
    assert len({first.sha256, second.sha256, third.sha256}) == 3


def test_thinking_is_never_sent_back() -> None:
    prompt = repaired(Failure(status=Status.NO_CODE), "<think>\nsecret draft\n</think>\nthe answer")
    assert prompt.history[-1] == ("assistant", "the answer")


@pytest.mark.parametrize("text", [None, "", "<think>never closed"])
def test_an_answer_without_text_is_said_to_be_one(text: str | None) -> None:
    role, answer = repaired(Failure(status=Status.TRUNCATED), text).history[-1]
    assert (role, answer) == ("assistant", "[This answer held no text outside the thinking.]")


def test_text_that_no_request_can_carry_is_replaced() -> None:
    prompt = repaired(Failure(status=Status.CRASH, details="a\ud800b"), "x\udfffy")
    prompt.model_dump_json().encode()
    assert prompt.history[-1][1] == "x?y"
    assert "a?b" in prompt.user


@pytest.mark.parametrize("status", [s for s in Status if s is not Status.CORRECT])
def test_every_failure_names_itself_and_asks_for_the_whole_file(status: Status) -> None:
    user = repaired(Failure.from_verification(verification(status))).user
    assert f"`{status.value}`" in user
    assert status.meaning in user
    assert f"seen: {status.value}" in user
    assert "complete file for problem level1/7 in one ```python fence" in user


def test_an_answer_without_a_program_is_told_what_was_odd() -> None:
    extraction = Extraction(candidate=None, status=Status.NO_CODE, method="none", warnings=("only_diff",))
    user = repaired(Failure.from_extraction(extraction)).user
    assert "only_diff" in user
    assert "class ModelNew" in user


def test_a_found_program_is_no_failed_extraction() -> None:
    with pytest.raises(ValueError, match="found a candidate"):
        Failure.from_extraction(Extraction(candidate=None, method="fence"))


def test_a_build_error_shows_only_the_failed_build_and_only_its_errors() -> None:
    log = "[1/2] c++ -c x.cpp -o x.o\n/s/x.cpp:4:2: error: expected ';'\n    4 |   int a"
    builds = (build(BuildState.OK, "/s/y.cpp:1:1: error: not this one"), build(BuildState.ERROR, log))
    user = repaired(Failure.from_verification(verification(Status.BUILD_ERROR, builds=builds))).user
    assert "```text\nx.cpp:4:2: error: expected ';'\n    4 |   int a\n```" in user
    assert "not this one" not in user
    assert "[1/2]" not in user


def test_wrong_values_come_with_their_statistics() -> None:
    statistics = (errors(), errors(trial="drawn", output=0, wrong=0, nan=0, first_bad=None))
    user = repaired(Failure.from_verification(verification(Status.WRONG_OUTPUT, errors=statistics))).user
    line = next(line for line in user.splitlines() if "`large`" in line)
    for figure in (
        "output 1 (float32)",
        "3 of 4096 elements wrong (0.07324 %)",
        "absolute error 0.125",
        "relative error 0.5",
        "norm of the error 0.001",
        "PyTorch's own: 1e-07",
        "2 NaN",
        "index [0, 17]: expected 1.5, got -2.25",
    ):
        assert figure in line, figure
    assert "`drawn`, output 0 (float32): all 4096 elements within tolerance" in user


def test_missing_figures_are_left_out() -> None:
    statistics = (errors(nan=0, first_bad=None, expected=None, got=None), errors(count=0, wrong=0, nan=0))
    user = repaired(Failure(status=Status.WRONG_OUTPUT, errors=statistics)).user
    line = next(line for line in user.splitlines() if "`large`" in line)
    assert line.endswith("1e-07)")
    assert "NaN" not in line and "index" not in line


@pytest.mark.parametrize(
    ("expected", "got", "says"),
    [
        (1.5, None, "expected 1.5, got NaN or infinite"),
        (None, 2.0, "expected NaN or infinite, got 2"),
        (None, None, "expected NaN or infinite, got NaN or infinite"),
    ],
)
def test_values_without_a_number_are_named(expected: float | None, got: float | None, says: str) -> None:
    statistics = (errors(first_bad=(3,), expected=expected, got=got),)
    user = repaired(Failure(status=Status.WRONG_OUTPUT, errors=statistics)).user
    assert f"index [3]: {says}\n" in user


def test_many_comparisons_are_cut_and_counted() -> None:
    statistics = tuple(errors(trial=f"variant{i}") for i in range(40))
    user = repaired(Failure(status=Status.WRONG_OUTPUT, errors=statistics)).user
    assert "`variant11`" in user and "`variant12`" not in user
    assert "28 more comparisons" in user


def test_findings_come_with_rule_line_and_evidence() -> None:
    finding = Finding(
        rule="missing_model_new",
        severity=Severity.ERROR,
        message="define class ModelNew",
        line=3,
        evidence="class Modelnew:",
    )
    note = Finding(rule="style", severity=Severity.NOTE, message="only a note")
    user = repaired(Failure(status=Status.CONTRACT_ERROR, findings=(finding, note))).user
    assert "- `missing_model_new` (line 3): define class ModelNew\n" in user
    assert "  ```python\n  class Modelnew:\n  ```\n" in user
    assert "only a note" not in user


def test_only_failed_checks_are_told() -> None:
    checks = tuple(
        Check(name=outcome.value, outcome=outcome, asked="Is it so?", seen="It was seen.")
        for outcome in CheckOutcome
    )
    user = repaired(Failure.from_verification(verification(Status.CHEATING, checks=checks))).user
    assert "- `fail`: Is it so? It was seen." in user
    assert "`pass`" not in user and "`not_applicable`" not in user


def test_long_output_is_cut_and_keeps_its_end() -> None:
    details = "start\n" + "x\n" * 50_000 + "the cause"
    user = repaired(Failure(status=Status.RUNTIME_ERROR, details=details)).user
    assert "the cause\n```" in user
    assert len(user) < 6_000


@pytest.mark.parametrize(
    ("speedup", "pace", "says"),
    [
        (0.5, Pace.SLOWER, "not measurably faster"),
        (1.0, Pace.UNRESOLVED, "not measurably faster"),
        (4.0, Pace.FASTER, "faster still"),
    ],
)
def test_a_right_answer_is_asked_for_one_idea(speedup: float, pace: Pace, says: str) -> None:
    measured = measurement(speedup, pace)
    user = repaired(Failure.from_verification(verification(Status.CORRECT, measurement=measured))).user
    assert "program is correct" in user
    assert f"{2.0 / speedup:g} ms; the reference takes 2 ms" in user
    assert f"{speedup:g}x" in user
    assert says in user
    assert "one hypothesis" in user
    assert "failed" not in user


def test_blank_lines_do_not_pile_up() -> None:
    full = Failure.from_verification(
        verification(Status.WRONG_OUTPUT, errors=(errors(),), details="trace", builds=())
    )
    bare = Failure(status=Status.CORRECT)
    for failure in (full, bare, Failure(status=Status.TIMEOUT)):
        assert "\n\n\n" not in repaired(failure).user
