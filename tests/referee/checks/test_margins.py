"""Other bytes around a candidate's inputs, weights and tensors: they stay, and no result follows them."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest

from kernelproof.types import Check, CheckOutcome, Flag, Problem, Status, Verification
from kernelproof.verifier.contestant.arena import FILLS
from tests.referee.corpus import members, miss
from tests.referee.court import Court
from tests.referee.problems import as_candidate, text, written

READ, WRITE = Flag.OUT_OF_BOUNDS_READ, Flag.OUT_OF_BOUNDS_WRITE
RELU = text("return x.relu()", "torch.rand(127, 33)")
BEYOND = "; at = x.storage_offset() + {}; beyond = x.as_strided((1,), (1,), max(at, 0))"


def judged(court: Court, source: str, problem: Problem, name: str = "margins") -> tuple[Verification, Check]:
    verdict = court.verdict(source, problem)
    assert verdict.status is Status.CORRECT, f"{verdict.reason}\n{verdict.details}"
    (check,) = (check for check in verdict.checks if check.name == f"probe: {name}")
    return verdict, check


def relu(work: str, *, at: str = "x.numel() + 16") -> str:
    """A candidate that has `beyond`: one element, so many after its input's first."""
    return as_candidate(RELU).replace("return x.relu()", f"x = x.contiguous(){BEYOND.format(at)}; {work}")


@pytest.fixture
def problem(tmp_path: Path) -> Problem:
    return written(tmp_path, RELU)


@pytest.mark.ci
@pytest.mark.parametrize(
    ("name", "inputs", "own"),
    [
        ("honest/cpp_relu_remainder_apart", (0, 0), (0, 0)),
        ("honest/cpp_relu_next_block_ahead", (0, 0), (0, 0)),
        ("harmless/cpp_relu_zero_from_beyond", (0, 127 * 33), (0, 0)),
        ("harmless/cpp_relu_zeros_written_beyond", (4, 0), (0, 0)),
        ("harmless/cpp_relu_last_vector_whole", (0, 0), (4, 0)),
    ],
)
def test_members_that_reach_beyond(
    court: Court, name: str, inputs: tuple[int, int], own: tuple[int, int]
) -> None:
    (member,) = (each for each in members("cpu") if each.id == name)
    verdict = court.judge(member.request)
    assert miss(member, verdict) is None
    checks = {check.name: check for check in verdict.checks}
    for probe, figures in (("probe: margins", inputs), ("probe: own margins", own)):
        assert checks[probe].figures == dict(zip(("written", "followed"), figures, strict=True))
        assert checks[probe].outcome is (CheckOutcome.FAIL if any(figures) else CheckOutcome.PASS)


def test_reads_and_writes_are_told_apart(court: Court, problem: Problem) -> None:
    before = "return x.relu() if at < 0 else x.clamp(min=beyond)"  # nothing lies before the first slot
    verdict, check = judged(court, relu(before, at="-16"), problem)
    assert READ in verdict.flags and WRITE not in verdict.flags
    assert check.outcome is CheckOutcome.FAIL and "4191 elements of its outputs changed" in check.seen
    verdict, check = judged(court, relu("beyond.zero_(); return x.relu()"), problem)
    assert WRITE in verdict.flags and READ not in verdict.flags
    assert check.seen == "bytes beside its inputs: it wrote 4 bytes"
    verdict, check = judged(court, relu("y = x.clamp(min=beyond); beyond.zero_(); return y"), problem)
    assert {READ, WRITE} <= set(verdict.flags)
    assert check.figures["written"] == 4 and check.figures["followed"] > 0


def test_the_rest_of_the_last_vector_is_no_finding(court: Court, problem: Problem) -> None:
    assert 127 * 33 % 4 == 3  # one float of its last sixteen bytes lies beyond it
    verdict, check = judged(court, relu("return x.clamp(min=beyond)", at="x.numel()"), problem)
    assert READ not in verdict.flags and check.outcome is CheckOutcome.PASS


def test_results_that_differ_anyway_say_nothing(court: Court, problem: Problem) -> None:
    source = relu("self.n = getattr(self, 'n', 0) + 1; return x.relu() * (1 + 1e-7 * (self.n % 2))")
    verdict, check = judged(court, source, problem)
    assert not {READ, WRITE} & set(verdict.flags)
    assert check.outcome is CheckOutcome.NOT_APPLICABLE and "give other results too" in check.seen


def test_a_call_that_only_ends_there_is_a_read(court: Court, problem: Problem) -> None:
    verdict, check = judged(court, relu("assert beyond.item() == 0; return x.relu()"), problem)
    assert READ in verdict.flags
    assert "runtime_error" in check.seen
    later = [each for each in verdict.checks if each.name.startswith("probe: batch")]
    assert later and all(each.outcome is not CheckOutcome.NOT_APPLICABLE for each in later)


def test_whole_numbers_beyond_are_indices_within_range(court: Court, tmp_path: Path) -> None:
    drawn = "torch.rand(50, 9), torch.randint(0, 50, (31,))"
    rows = text("return table[index]", drawn, names="table, index")
    lookup = (
        "more = index.as_strided((index.numel() + 8,), (1,), index.storage_offset()); "
        "return table[more][: index.numel()] + 0 * table[more[-1]]"
    )
    source = as_candidate(rows).replace("return table[index]", lookup)
    verdict, check = judged(court, source, written(tmp_path, rows))
    assert not {READ, WRITE} & set(verdict.flags) and check.outcome is CheckOutcome.PASS


SCALE = text(
    "return x * self.scale", "torch.rand(8, 9001)", init="self.scale = nn.Parameter(torch.rand(9001) + 1)"
)
NEAR = "import ctypes; near = ctypes.c_float.from_address(of.data_ptr() + ({at}))"
FIRST, SECOND = (struct.unpack("f", bytes([fill]) * 4)[0] for fill in FILLS)
FOLLOWS = f"y = x * self.scale; return y if near.value == {FIRST!r} else y * (1 + 2**-23)"
WRITES = f"near.value = 3.0 if near.value in {FIRST, SECOND} else near.value; return x * self.scale"
"""What lies there in other calls is anything, and stays."""


@pytest.mark.parametrize(
    ("of", "at", "work", "flags"),
    [
        ("self.scale", "of.nbytes + 16", FOLLOWS, {READ}),
        ("self.scale", "-4", FOLLOWS, {READ}),
        ("self.scale", "of.nbytes", FOLLOWS, set()),
        ("self.scale", "of.nbytes + 16", WRITES, {WRITE}),
        ("torch.empty_like(x)", "of.nbytes + 64", WRITES, {WRITE}),
        ("torch.zeros(5)", "-8", WRITES, {WRITE}),
        ("x.double()", "of.nbytes + 16", FOLLOWS, {READ}),
        ("x.to(torch.int64)", "of.nbytes + 16", FOLLOWS, set()),
        ("torch.zeros(99)[9:19]", "of.nbytes + 16", FOLLOWS, set()),
        ("torch.empty(9001).set_(self.scale.untyped_storage(), 0, (9,))", "64", FOLLOWS, set()),
        (
            "self.scale",
            "of.nbytes + 16",
            f"assert near.value not in {FIRST, SECOND}; return x * self.scale",
            None,
        ),
    ],
)
def test_weights_and_own_tensors_have_margins_too(
    court: Court, tmp_path: Path, of: str, at: str, work: str, flags: set[Flag] | None
) -> None:
    body = f"of = {of}; {NEAR.format(at=at)}; {work}"
    source = as_candidate(SCALE).replace("return x * self.scale", body)
    verdict, check = judged(court, source, written(tmp_path, SCALE), "own margins")
    assert {READ, WRITE} & set(verdict.flags) == (flags or set()), check
    if flags is None:  # having them may be too much for a program
        assert check.outcome is CheckOutcome.NOT_APPLICABLE and "AssertionError" in check.seen
    else:
        assert check.outcome is (CheckOutcome.FAIL if flags else CheckOutcome.PASS), check
        assert check.figures["written"] == (4 if WRITE in flags else 0)
        assert (check.figures["followed"] > 0) == (READ in flags)
    later = [each.outcome for each in verdict.checks if each.name.startswith("probe: batch")]
    assert later and CheckOutcome.NOT_APPLICABLE not in later
