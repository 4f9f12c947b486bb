"""Every candidate of the corpus gets the status it deserves, from the check that should see it."""

from __future__ import annotations

import re
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from tests.referee.corpus import CORPUS, DEVICES, Confusion, Member, members
from tests.referee.court import Court

PAGE = (Path(__file__).parents[2] / "docs" / "reference" / "corpus.md").read_text()


ONE_OF = {"honest": 24, "harmless": 4, "wrong": 16, "faults": 12}
"""`make test-ci` judges one of so many of these kinds."""
LONG = (
    "cheats/clock_rewritten_in_libc",
    "cheats/own_kernel_until_timed",
    "cheats/skips_work_later",
    "cheats/slow_then_skips",
    "faults/build_of_hostile_names",
    "faults/endless_constructor",
    "faults/endless_forward",
    "harmless/baseline_functions_slowed",
    "harmless/clock_blurred",
    "harmless/continued_by_a_timer",
    "harmless/cores_hogged_between_turns",
    "harmless/first_call_computes_all",
    "harmless/first_call_does_all",
    "harmless/idles_in_short_blocks",
    "harmless/more_cores_than_given",
    "harmless/slow_when_first_called",
    "honest/batch_norm_train_statistics",
    "honest/batched_matmul_thread_pool",
    "honest/conv2d_channels_last",
    "honest/cpp_gelu_pool_of_threads",
    "honest/cpp_long_sums_in_turn",
    "honest/cpp_relu_loaded_from_files",
    "honest/cpp_relu_name_drawn_anew",
    "honest/cpp_softmax_loaded_from_a_tree",
    "honest/cpp_sum_openmp_atomics",
    "honest/cumulative_sum_cached_triangle",
    "honest/layer_norm_same_names",
    "honest/linear_cache_by_version",
    "honest/linear_cached_weight",
    "honest/linear_of_one_row",
    "honest/relu_strided_output",
    "honest/relu_with_handlers_of_signals",
    "honest/softmax_threads_asleep",
    "honest/triton_layer_norm_next_power",
)
"""These take six seconds to half a minute each: they too are left to `make test-slow`."""

CLOCK = "host_clock"
"""The check by the referee's own clock. Members that it has to see are judged alone."""

IN_FULL = ("cheats/copy_beside_torch",)
"""Compiled against all of torch's headers: left to `make test-ci`."""


def chosen() -> list[Any]:
    """All members, those marked that only `make test-ci` or `make test-slow` judges."""
    found = members("cpu")
    first = first_of_each_kind(found) - set(LONG) - set(IN_FULL)
    some = first_of_each_kind_and_status(found) | first_of_each_way(found) | some_of_each_kind(found)
    some = (some | set(IN_FULL)) - set(LONG)

    def marks(member: Member) -> list[pytest.MarkDecorator]:
        # Beside other work the referee's own clock is too uncertain to convict anybody.
        alone = [pytest.mark.clock] if CLOCK in member.caught_by else []
        if member.id in first:
            return alone
        return [pytest.mark.ci if member.id in some else pytest.mark.slow, *alone]

    return [pytest.param(member, id=member.id, marks=marks(member)) for member in found]


def first_of_each_way(found: list[Member]) -> set[str]:
    """For each row of the page's table of ways to beat a verifier: the first cheat of those found."""
    there = {member.id for member in found}
    rows = [re.findall(r"`(cheats/\w+)`", line) for line in PAGE.splitlines() if line.startswith("|")]
    return {next(name for name in row if name in there) for row in rows if there.intersection(row)}


def first_of_each_kind(found: list[Member]) -> set[str]:
    """The first member of each kind."""
    first: dict[str, str] = {}
    for member in found:
        first.setdefault(member.kind, member.id)
    return set(first.values())


def first_of_each_kind_and_status(found: list[Member]) -> set[str]:
    """The first member of each kind for each status that is expected."""
    first: dict[tuple[str, str], str] = {}
    for member in found:
        first.setdefault((member.kind, member.expected[0]), member.id)
    return set(first.values())


def some_of_each_kind(found: list[Member]) -> set[str]:
    """Every `ONE_OF`-th member of its kind."""
    return {
        member.id
        for kind, step in ONE_OF.items()
        for member in [member for member in found if member.kind == kind][::step]
    }


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


def test_what_a_processor_can_show_is_judged_on_one() -> None:
    files = {path.stem for path in (CORPUS / "honest").glob("*.py")}
    here, there = ({m.name for m in members(device) if m.kind == "honest"} for device in DEVICES)
    interpreted = {name for name in here if name.startswith("triton_")}  # not all: an interpreter has limits
    elsewhere = ("cuda_", "gpu_", "triton_")
    assert {name for name in files if not name.startswith(elsewhere)} == here - interpreted
    assert interpreted or find_spec("triton") is None
    assert {name for name in files if not name.startswith("cpp_")} == there
