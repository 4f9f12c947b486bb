"""`reproduce`: the same on the same machine, and clear words for whatever keeps it from saying so."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path

import pytest

from kernelproof.types import AttemptKey, Extraction, Status, Verification
from tests.cli import material
from tests.cli.conftest import MEASURED
from tests.cli.program import Program


@pytest.mark.ci
def test_the_same_machine_finds_the_same(verified: Program) -> None:
    found = json.loads(verified.run("reproduce", "1", "--json", code=None).stdout)
    # On a machine that others use at this moment the time may differ; what is right stays right.
    assert found["finding"] in ("same", "faster", "slower", "ambiguous")
    assert (found["then"]["status"], found["now"]["status"]) == ("correct", "correct")
    assert found["differences"] == {} and found["alterations"] == []
    (attempt,) = verified.attempts()
    assert [v.kind for v in attempt.verifications] == ["first", "reproduce"]
    assert attempt.verifications[1].id == found["verification_id"]
    assert attempt.verdict == attempt.verifications[0]
    assert verified.left_after() == {} and verified.scratch() == []


@pytest.mark.thorough
def test_same_five_times_out_of_five(program: Program, suite: Path, tmp_path: Path) -> None:
    """Asks for a quiet machine."""
    file = tmp_path / "sines.py"
    file.write_text(material.sines())
    program.run("verify", file, "--problem", "sines", "--suite", suite, *MEASURED)
    findings = []
    for _ in range(5):
        done = program.run("reproduce", "last", code=None)
        findings.append(done.stdout.splitlines()[:2])
    print(*findings, sep="\n")
    assert [first for first, _ in findings] == ["attempt 1: same"] * 5


@pytest.mark.ci
def test_an_altered_source_is_said_and_nothing_is_run(verified: Program) -> None:
    with sqlite3.connect(verified.workspace / "db" / "attempts.sqlite") as connection:
        changed = connection.execute(
            "UPDATE texts SET body = replace(body, 'std::sin', 'std::cos') WHERE sha256 IN "
            "(SELECT source_sha256 FROM candidates)"
        )
        assert changed.rowcount == 1
    done = verified.run("reproduce", "1", code=1)
    assert done.stdout.startswith("attempt 1: tampered\n") and "  tampered: " in done.stdout
    assert len(verified.attempts()[0].verifications) == 1


@pytest.mark.ci
def test_another_environment_is_not_comparable(verified: Program) -> None:
    """The stored result is replaced by one that claims to come from another CPU and torch."""
    with verified.store() as store:
        stored = store.load_attempt(1)
        first = stored.verifications[0]
        environment = first.verification.environment
        assert environment is not None
        elsewhere = environment.model_copy(update={"cpu": "Another CPU", "torch": "2.11.0"})
        claim = first.verification.model_copy(update={"environment": elsewhere})
        store.retract(first.id, "replaced by a claim from elsewhere")
        store.record_verification(1, Verification.model_validate(claim.model_dump()), "again")
    done = verified.run("reproduce", "1", code=3)
    assert done.stdout.startswith("attempt 1: not comparable\n")
    assert "cpu: Another CPU then" in done.stdout and "torch: 2.11.0 then" in done.stdout


@pytest.mark.ci
def test_a_failure_that_fails_again_is_the_same(program: Program, suite: Path, tmp_path: Path) -> None:
    file = tmp_path / "wrong.py"
    file.write_text(material.wrong())
    program.run("verify", file, "--problem", "relu", "--suite", suite, *MEASURED, code=1)
    done = program.run("reproduce", "#1", code=0)
    assert done.stdout.startswith("attempt 1: same\n") and "wrong_output both times" in done.stdout


def test_an_attempt_without_a_verification(program: Program, suite: Path, tmp_path: Path) -> None:
    file = tmp_path / "prose.md"
    file.write_text("no code")
    program.run("verify", file, "--problem", "relu", "--suite", suite, "--backend", "cpp", code=1)
    done = program.run("reproduce", "last", code=2)
    assert "attempt 1 was never verified (it ended as no_code)" in done.stderr
    with program.store() as store:
        stored = store.load_attempt(1)
        key = stored.key.model_copy(update={"sample": 1})
        attempt = store.begin_attempt(stored.run_id, AttemptKey.model_validate(key.model_dump()))
        store.record_extraction(attempt, Extraction(candidate=None, status=Status.NO_CODE, method="none"))
    assert "it is not finished" in program.run("reproduce", attempt, code=2).stderr
    assert "the last one is 2" in program.run("reproduce", "3", code=2).stderr
    assert "names no attempt" in program.run("reproduce", "first", code=2).stderr
