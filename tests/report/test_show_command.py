"""`kernelproof show`: everything about an attempt, and nothing that steers the terminal."""

from __future__ import annotations

import json
import re
import sqlite3
from contextlib import closing

import pytest

from kernelproof.db.store import Store
from kernelproof.db.views import StoredAttempt
from kernelproof.errors import KernelproofError, UsageError
from kernelproof.extraction import extract
from kernelproof.hashing import sha256_text
from kernelproof.report.show import MOST_SHOWN
from kernelproof.types import (
    Build,
    BuildState,
    Check,
    CheckOutcome,
    ErrorStatistics,
    Finding,
    Response,
    SandboxReport,
    Severity,
    Status,
    Usage,
    VerifySettings,
)
from kernelproof.types.record import STORED
from tests.db import samples
from tests.report.conftest import Command

EVIL = "class ModelNew: ...  # \x1b]0;owned\x07\x1b[2J[red]not markup[/red]"


@pytest.fixture
def wrong(store: Store) -> int:
    """A wrong attempt with every kind of evidence."""
    attempt = samples.begin(store, samples.problem(), samples.settings())
    store.record_provider_error(attempt, "503 overloaded")
    store.record_response(attempt, samples.response("Here it is:\n" + EVIL))
    store.record_extraction(attempt, samples.extraction(EVIL))
    verification = samples.verification(samples.problem(), Status.WRONG_OUTPUT).model_copy(
        update={
            "reason": "3 of 100 elements differ.",
            "builds": (
                Build(
                    key="k", state=BuildState.OK, name="ext", log="note: \x1b[1mbold", commands=("c++ -O3",)
                ),
            ),
            "findings": (Finding(rule="bare_except", severity=Severity.WARNING, message="Do not.", line=7),),
            "checks": (
                Check(
                    name="output_values",
                    outcome=CheckOutcome.FAIL,
                    asked="Do the values agree?",
                    seen="3 of 100 do not.",
                    figures={"wrong": 3, "worst": 0.123456, "for_machines": {"all": [1, 2]}},
                ),
            ),
            "errors": (
                ErrorStatistics(
                    trial="signed",
                    output=0,
                    dtype="float32",
                    count=100,
                    wrong=3,
                    max_abs=0.5,
                    max_rel=float("inf"),
                    relative_norm=1e-3,
                    reference_relative_norm=1e-7,
                    first_bad=(1, 2),
                    expected=1.5,
                    got=1.0,
                ),
                ErrorStatistics(
                    trial="large",
                    output=0,
                    dtype="float32",
                    count=100,
                    wrong=1,
                    max_abs=0.0,
                    max_rel=0.0,
                    relative_norm=0.0,
                    reference_relative_norm=1e-7,
                    nan=1,
                    first_bad=(0, 8),
                    expected=2.5,
                ),
            ),
            "sandbox": SandboxReport(tier="A", layers={"network": "none"}),
            "details": "stderr: [bold]x[/bold]",
            "exit": "exit 0",
            "stage_seconds": {"build": 12.5},
        }
    )
    store.record_verification(attempt, verification)
    store.finish_attempt(attempt, Status.WRONG_OUTPUT)
    return attempt


def test_everything_is_shown(wrong: int, command: Command) -> None:
    printed = command("show", f"#{wrong}", "--all")
    for text in (
        "wrong_output · 3 of 100 elements differ · attempt 1\nlevel1/1, sample 0, turn 1, run 1\n",
        "wrong_output: Output values differ",
        "You write kernels.",
        "Rewrite Model.",
        "503 overloaded",
        "Here it is:",
        "10 for the prompt, 20 for the answer",
        "c++ -O3",
        "bare_except",
        "Do the values agree?",
        "3 of 100 do not.",
        "wrong 3, worst 0.1235",
        "[1, 2]: expected 1.5, got 1",
        "[0, 8]: expected 2.5, got NaN or infinite",
        "stderr: [bold]x[/bold]",
        "Test CPU",
        "tier A; network none",
        "build 12.5",
    ):
        assert text in printed
    assert "for_machines" not in printed


def test_the_result_comes_first_and_is_one_screen(wrong: int, command: Command) -> None:
    lines = command("show").splitlines()
    assert lines[0] == "wrong_output · 3 of 100 elements differ · attempt 1"
    printed = "\n".join(lines)
    assert "3 of 100 do not." in printed and f"kernelproof show {wrong} " in printed
    assert "--all" in printed and "You write kernels." not in printed
    assert len(lines) <= 24


def test_a_record_is_shown_whose_backend_is_no_longer_installed(store: Store, command: Command) -> None:
    gone = VerifySettings.model_validate({"backend": "opencl", "size": "small", "threads": 2}, context=STORED)
    samples.judge(store, samples.problem(), samples.settings(verify=gone), speedup=2.0)
    printed = command("show", "--all")
    assert "opencl" in printed and "rigor standard, 2 threads" in printed
    assert "opencl" in command("leaderboard")


def test_a_measurement_is_shown(store: Store, command: Command) -> None:
    samples.judge(store, samples.problem(), samples.settings(), speedup=2.0)
    printed = command("show", "--all")
    assert re.search(r"\nspeedup +2.00× \[1.98, 2.02\] faster *\n", printed)
    assert "1 in 1 block (BC), 4 input sets" in printed
    assert "load_1min 0.5" in printed


@pytest.mark.parametrize(
    ("part", "there", "not_there"),
    [
        ("prompt", "Rewrite Model.", "ModelNew"),
        ("response", "Here it is:", "Rewrite Model."),
        ("source", "class ModelNew", "Here it is:"),
        ("log", "note: \x1b[1mbold", "ModelNew"),
        ("checks", "Do the values agree?", "ModelNew"),
    ],
)
def test_one_part_alone(wrong: int, command: Command, part: str, there: str, not_there: str) -> None:
    printed = command("show", "last", f"--{part}")
    assert there in printed
    assert not_there not in printed


@pytest.mark.parametrize(
    ("part", "why"), [("response", ": .*I cannot help"), ("source", ": .*I cannot help"), ("log", "$")]
)
def test_a_text_that_is_not_there_is_no_empty_file(
    store: Store, command: Command, part: str, why: str
) -> None:
    attempt = samples.begin(store, samples.problem(), samples.settings())
    refusal = Response(text=None, refusal="I cannot help.", finish_reason="stop")
    store.record_response(attempt, refusal)
    store.record_extraction(attempt, extract(refusal))
    with pytest.raises(KernelproofError, match=f"attempt {attempt} has no {part}{why}"):
        command("show", f"--{part}")


def test_tokens_and_cost_of_an_answer(store: Store, command: Command) -> None:
    usage = Usage(prompt_tokens=1200, cached_tokens=1000, completion_tokens=300, reasoning_tokens=0)
    attempt = samples.begin(store, samples.problem(), samples.settings())
    answer = samples.response().model_copy(update={"usage": usage, "cost_usd": 0.0123})
    store.record_response(attempt, answer)
    shown = " ".join(command("show", "--all").split())
    assert "tokens 1,200 for the prompt (1,000 cached), 300 for the answer (0 reasoning)" in shown
    assert "cost $0.012" in shown


def test_of_a_long_text_the_beginning_is_shown_among_the_others(store: Store, command: Command) -> None:
    attempt = samples.begin(store, samples.problem(), samples.settings())
    store.record_response(attempt, samples.response("a" * MOST_SHOWN + "bc"))
    printed = command("show", "--all")
    assert "a\n[2 characters left out: kernelproof show 1 --response]\n" in printed and "bc" not in printed
    assert command("show", "--response").endswith("abc")


def test_one_part_at_a_time(wrong: int, command: Command) -> None:
    with pytest.raises(UsageError, match="--source and --json exclude each other; give one of them"):
        command("show", "--json", "--source")


def test_json_holds_everything_exactly(wrong: int, store: Store, command: Command) -> None:
    value = json.loads(command("show", "--json"))
    assert value["extraction"]["candidate"]["source"] == EVIL
    assert value["verifications"][0]["verification"]["errors"][0].pop("max_rel") is None
    value["verifications"][0]["verification"]["errors"][0]["max_rel"] = float("inf")
    assert StoredAttempt.model_validate(value) == store.load_attempt(wrong)


def test_alterations_are_the_first_thing_said(wrong: int, store: Store, command: Command) -> None:
    with closing(sqlite3.connect(store.path)) as connection, connection:
        connection.execute("UPDATE texts SET body = 'new' WHERE sha256 = ?", (sha256_text(EVIL),))
    lines = command("show").splitlines()
    assert lines[1].startswith("ALTERED: candidate source")


def test_all_verifications_are_listed_and_the_retracted_one_says_why(store: Store, command: Command) -> None:
    attempt, first = samples.judge(store, samples.problem(), samples.settings(), speedup=2.0)
    store.record_verification(attempt, samples.verification(samples.problem(), speedup=1.5), "again")
    store.retract(first, "the fan was off")
    lines = command("show", "--all").splitlines()
    assert any("retracted: the fan was off" in line and "first" in line for line in lines)
    assert any(line.rstrip().endswith("counts") and "again" in line for line in lines)


def test_an_attempt_in_progress_shows_what_there_is(store: Store, command: Command) -> None:
    samples.begin(store, samples.problem(), samples.settings())
    printed = command("show", "--all")
    for text in ("in progress", "No response is stored.", "Nothing was extracted yet.", "Nothing was built."):
        assert text in printed


def test_what_names_no_attempt_is_the_users_mistake(wrong: int, command: Command) -> None:
    with pytest.raises(UsageError, match="there is no attempt 9"):
        command("show", "9")


def test_why_there_is_no_program_is_told_in_the_servers_words(store: Store, command: Command) -> None:
    refusal = Response(text=None, refusal="I \x1b[31mcannot\x1b[0m help.", finish_reason="stop")
    cut = Response(text="import", finish_reason="length", usage=Usage(completion_tokens=512))
    for number, response in enumerate((refusal, cut)):
        attempt = samples.begin(store, samples.problem(), samples.settings(), sample=number)
        store.record_response(attempt, response)
        store.record_extraction(attempt, extract(response))
        store.finish_attempt(attempt, extract(response).status or Status.NO_CODE)
    shown = " ".join(command("show", "1", "--all").split())
    assert "refused: The model declined to answer." in shown
    assert "help., the server's finish reason is stop" in shown and "\x1b" not in shown
    shown = " ".join(command("show", "2").split())
    assert "the server's finish reason is length, after 512 tokens" in shown
    assert "the server ended the answer at its own limit after 512 tokens; --max-tokens asks" in shown
