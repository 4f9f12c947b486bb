"""The packaged recordings are whole: labelled, varied, and each with a program where its status says so."""

from __future__ import annotations

from collections import Counter, defaultdict
from functools import cache

import pytest

from kernelproof.problems import open_suite
from kernelproof.providers import ReplayProvider
from kernelproof.providers.recording import Record
from kernelproof.types import Severity, Status
from kernelproof.verifier.policy import review
from tests.recorded.records import BACKENDS, NO_PROGRAM, everything, expected, extracted, name, records

POLICY = {Status.SYNTAX_ERROR, Status.CONTRACT_ERROR}
SHOWN = {
    Status.CORRECT,
    Status.WRONG_OUTPUT,
    Status.WRONG_SHAPE,
    Status.WRONG_DTYPE,
    Status.MUTATED_INPUT,
    Status.CHEATING,
    Status.NO_CUSTOM_KERNEL,
    Status.BUILD_ERROR,
    Status.LOAD_ERROR,
    Status.RUNTIME_ERROR,
    Status.SYNTAX_ERROR,
    Status.CONTRACT_ERROR,
    Status.TRUNCATED,
    Status.NO_CODE,
}
"""What the demo shows in either backend."""


def test_the_replay_provider_offers_all_of_them() -> None:
    assert set(ReplayProvider("demo").questions()) == {record.key for record in everything()}


suite = cache(open_suite)


@pytest.mark.parametrize("record", everything(), ids=name)
def test_a_record_is_labelled_and_extraction_and_policy_give_what_its_note_expects(record: Record) -> None:
    assert (record.response["model"], record.response["usage"]) == ("kernelproof-recorded", None)
    found, status = extracted(record), expected(record)
    if status in NO_PROGRAM:
        assert (found.candidate, found.status) == (None, status)
        return
    assert found.candidate is not None, found
    findings = review(found.candidate.source, suite().find(record.problem), record.backend)
    fatal = {finding.status for finding in findings if finding.severity is Severity.ERROR}
    assert fatal == ({status} if status in POLICY else set())


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_backend_has_twenty_answers_to_ten_problems_and_repairs_eight(backend: str) -> None:
    first = [record for record in records(backend).values() if record.turn == 1]
    assert len(first) >= 20
    assert len({record.problem for record in first}) >= 10
    assert {"level1/5", "level2/1", "level2/2"} <= {record.problem for record in first}
    assert set(Counter(record.problem for record in first).values()) == {2}
    repaired = {r.problem for r in records(backend).values() if r.turn == 2 and expected(r) is Status.CORRECT}
    assert len(repaired) >= 8


@pytest.mark.parametrize("backend", BACKENDS)
def test_every_problem_has_a_right_answer_and_every_failure_is_shown(backend: str) -> None:
    statuses = defaultdict(set)
    for record in records(backend).values():
        statuses[record.problem].add(expected(record))
    assert [problem for problem, seen in statuses.items() if Status.CORRECT not in seen] == []
    assert set.union(*statuses.values()) >= SHOWN


@pytest.mark.parametrize("backend", BACKENDS)
def test_turns_follow_each_other_and_end_with_the_right_answer(backend: str) -> None:
    conversations = defaultdict(dict)
    for record in records(backend).values():
        conversations[record.problem, record.sample][record.turn] = expected(record)
    for place, turns in conversations.items():
        assert sorted(turns) == list(range(1, len(turns) + 1)), place
        assert Status.CORRECT not in list(turns.values())[:-1], place


def test_extraction_meets_many_shapes_of_answers() -> None:
    found = [extracted(record) for record in everything()]
    methods = {extraction.method for extraction in found}
    warnings = {warning.partition(":")[0] for extraction in found for warning in extraction.warnings}
    assert methods >= {"fence", "lenient_fence", "whole", "json", "none"}
    assert warnings >= {
        "thinking_removed",
        "missing_think_opener",
        "unclosed_thinking",
        "channels_removed",
        "unclosed_fence",
        "second_version_wins",
        "diff_skipped",
        "reference_echoed",
        "placeholder_skipped",
        "split_over_blocks",
        "trimmed_trailing_lines",
        "does_not_parse",
        "normalised",
        "finish_reason",
    }


def test_ten_problems_have_answers_in_triton_and_eight_are_repaired() -> None:
    statuses = defaultdict(set)
    for record in records("triton").values():
        statuses[record.problem, record.sample].add(expected(record))
    assert len({problem for problem, _ in statuses}) >= 10
    assert all(Status.CORRECT in seen for seen in statuses.values())
    assert sum(len(seen) == 2 for seen in statuses.values()) >= 8
