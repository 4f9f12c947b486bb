"""Every candidate of the corpus gets the status it deserves, from the check that should see it."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from tests.referee.corpus import CORPUS, DEVICES, KINDS, Confusion, Member, members
from tests.referee.court import Court

PAGE = (Path(__file__).parents[2] / "docs" / "reference" / "corpus.md").read_text()


ONE_OF = {"honest": 4, "wrong": 4, "faults": 4}
"""Cheats are judged whenever tests are run; of the others one of so many, and all in `make test-slow`."""
LONG = (
    "cheats/clock_rewritten_in_libc",
    "cheats/own_kernel_until_timed",
    "harmless/baseline_functions_slowed",
    "harmless/clock_blurred",
    "harmless/cores_hogged_between_turns",
    "harmless/first_call_does_all",
    "harmless/more_cores_than_given",
    "harmless/slow_when_first_called",
    "honest/batched_matmul_thread_pool",
    "honest/batch_norm_train_statistics",
    "honest/conv2d_channels_last",
    "honest/cpp_long_sums_in_turn",
    "honest/cpp_relu_loaded_from_files",
    "honest/cpp_softmax_loaded_from_a_tree",
    "honest/cpp_sum_openmp_atomics",
    "honest/cumulative_sum_cached_triangle",
    "honest/linear_cache_by_version",
    "honest/linear_cached_weight",
    "honest/relu_strided_output",
)
"""These take seven seconds to half a minute each: they too are left to `make test-slow`."""


def chosen() -> list[Any]:
    """All members, those that only `make test-slow` judges marked so."""
    return [
        pytest.param(member, id=member.id, marks=[pytest.mark.slow] if later(member, number) else [])
        for kind in KINDS
        for number, member in enumerate(m for m in members("cpu") if m.kind == kind)
    ]


def later(member: Member, number: int) -> bool:
    """Whether the member, the `number`-th of its kind, is left to `make test-slow`."""
    return member.id in LONG or number % ONE_OF.get(member.kind, 1) > 0


@pytest.mark.parametrize("member", chosen())
def test_gets_what_it_deserves(member: Member, court: Court, confusion: Confusion) -> None:
    faulty = member.kind == "faults"
    verdict = court.judge(member.request, ahead=not faulty)
    why = confusion.add(member, verdict)
    assert why is None, f"{why}\n{verdict.details}"
    assert not (faulty and court.left_over())


def test_the_page_names_what_there_is() -> None:
    there = {f"{path.parent.name}/{path.stem}" for path in CORPUS.glob("*/*.py")}
    named = set(re.findall(r"`((?:honest|harmless|wrong|cheats|faults)/\w+)`", PAGE))
    assert named - there == set()
    tricks = {member for member in there if member.startswith(("cheats/", "harmless/"))}
    assert tricks - named == set()


def test_the_page_answers_every_way_to_beat_a_verifier() -> None:
    assert [int(number) for number in re.findall(r"^\| (\d+) \|", PAGE, re.MULTILINE)] == list(range(1, 59))


def test_every_member_runs_somewhere() -> None:
    runs = {member.id for device in DEVICES for member in members(device)}
    files = {
        f"{path.parent.name}/{path.stem}" for path in CORPUS.glob("*/*.py") if path.parent.name != "problems"
    }
    assert files == runs
