"""Stages as the engine tells them: no time is lost or counted twice. And the candidates it is given."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.candidates import candidates, distinct, recorded, right
from benchmarks.stages import QUEUE, spans_of
from kernelproof.errors import UsageError
from kernelproof.problems import open_suite

STAGES = ("reference", "start", "load", "correctness", "waiting for cpu: process 7 is measuring", "timing")
seconds = st.floats(0.0, 50.0)


@given(st.lists(seconds, min_size=len(STAGES) + 2, max_size=len(STAGES) + 2), seconds)
def test_spans_follow_each_other_without_gaps(lengths: list[float], build_s: float) -> None:
    at, events = 100.0, [("review", 100.0)]
    for stage, length in zip(("build", *STAGES, "end"), lengths, strict=True):
        at += length
        events.append((stage, at))
    spans = spans_of(3, events, build_s)
    assert [span.stage for span in spans] == ["review", "build", QUEUE, *STAGES[:4], "waiting", "timing"]
    assert (spans[0].begin, spans[-1].end) == (100.0, at)
    assert all(left.end == right.begin for left, right in itertools.pairwise(spans))
    assert spans[1].seconds <= build_s + 1e-9 and min(span.seconds for span in spans) >= 0.0
    assert {span.candidate for span in spans} == {3}


@pytest.mark.parametrize("backend", ["cpp", "cuda"])
def test_candidates_are_distinct_where_they_are_compiled(backend: str) -> None:
    work = candidates(backend, 60)
    assert len({each.source for each in work}) == 60
    correct = [answer.source for answer in recorded(backend) if answer.expected == "correct"]
    assert all(distinct(source, 7).count("// 7") >= 1 for source in correct)
    softmax = open_suite().find("level1/2")
    assert right(backend, softmax) in correct
    with pytest.raises(UsageError, match="no answer to level1/20"):
        right(backend, open_suite().find("level1/20"))
