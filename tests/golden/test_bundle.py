"""The bundle of another day: its hash, its reader, and the number that it claims."""

from __future__ import annotations

import json

import pytest

from kernelproof.runs.bundles.reader import Bundle
from kernelproof.types import Status
from tests.cli.program import Program
from tests.golden.loading import BUNDLE, load

SHA256 = load("keys.json")["bundle"]["sha256"]


def test_it_is_read_and_nothing_in_it_looks_altered() -> None:
    with Bundle(BUNDLE) as bundle:
        assert (bundle.tampering, bundle.sha256) == ((), SHA256)
        (number,) = bundle.numbers
        attempt, tampering = bundle.checked_attempt(number)
    assert tampering == () and attempt is not None
    assert (attempt.problem.id, attempt.verification.status) == ("level1/2", Status.CORRECT)
    assert attempt.verification.measurement is not None


def test_the_command_lists_it(program: Program) -> None:
    told = program.run("reproduce", BUNDLE, "--list").stdout
    assert told.startswith(f"{BUNDLE}: 1 attempt, sha256 {SHA256}")


@pytest.mark.ci
def test_it_is_reproduced_with_the_checks_that_it_had(program: Program) -> None:
    done = program.run("reproduce", BUNDLE, "--suite", "problems", "--rigor", "quick", "--json", code=None)
    found = json.loads(done.stdout)
    (one,) = found["reproductions"]
    assert (found["tampering"], one["now"]["status"]) == ([], "correct")
    then, now = ({check["name"] for check in one[when]["checks"]} for when in ("then", "now"))
    # A candidate that a busy machine makes far slower is spared the probes, as the stored one was.
    assert {name for name in now if not name.startswith("probe")} <= then
    assert now >= {"weights", "values: drawn", "state_unchanged", "own_kernel", "timed_outputs", "host_clock"}
