"""Margins around inputs, weights and own tensors on a real GPU: what reaches into them is found, and no
honest program is accused."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from kernelproof.types import Check, CheckOutcome, Verification
from kernelproof.verifier.sandbox import Group
from tests.referee.conftest import holding_court
from tests.referee.corpus import Member, build_ahead, members, miss
from tests.referee.court import Court

pytestmark = pytest.mark.gpu

INPUTS, OWN = "probe: margins", "probe: own margins"
FOUND = {
    "harmless/cuda_gelu_formula_by_the_next_block": (INPUTS, "followed"),
    "harmless/cuda_silu_gate_halo_before_the_first_row": (INPUTS, "followed"),
    "harmless/cuda_unit_norm_total_behind_its_input": (INPUTS, "written"),
    "harmless/triton_gelu_loaded_without_mask": (INPUTS, "followed"),
    "harmless/cuda_rms_norm_weight_of_the_next_block": (OWN, "followed"),
    "harmless/triton_relu_stored_without_mask": (OWN, "written"),
}
"""Which probe finds what."""
CLEAN = (
    "honest/cuda_gelu_formula_by_its_own_block",
    "honest/cuda_gelu_vector_over_the_end",
    "honest/cuda_rms_norm_by_its_first_weight",
    "honest/cuda_silu_gate_by_its_first_element",
    "honest/cuda_unit_norm_total_of_its_own",
    "honest/triton_gelu_loaded_with_mask",
    "honest/triton_relu_stored_with_mask",
    "honest/conv2d_library_tuned",
    "honest/cuda_graph_of_own_kernels",
    "honest/cuda_linear_library_epilogue",
    "honest/cuda_linear_weight_kept_in_cpp",
    "honest/cuda_rotary_captured_in_every_call",
    "honest/cuda_rotary_two_streams",
    "honest/cuda_softmax_stream_memory_large",
    "honest/gpu_gelu_graph_for_each_address",
    "honest/gpu_linear_empties_cache",
    "honest/gpu_softmax_graph",
    "honest/gpu_swiglu_forked_by_events",
    "honest/lstm_vendor_library",
    "honest/triton_linear_gelu_autotuned",
)
"""The twins, and others that steer memory, streams and graphs, or leave work to libraries."""


def chosen(names: tuple[str, ...]) -> list[Member]:
    found = {member.id: member for member in members("cuda")}
    return [found[name] for name in names]


@pytest.fixture(scope="module")
def court(tmp_path_factory: pytest.TempPathFactory, cache: Path) -> Iterator[Court]:
    threads = max(1, len(os.sched_getaffinity(0)) // 2)
    build_ahead(chosen((*FOUND, *CLEAN)), cache, Group(), threads=threads)
    with holding_court(tmp_path_factory, cache) as court:
        yield court


def looked_at(court: Court, member: Member) -> tuple[Verification, dict[str, Check]]:
    request = member.request
    settings = request.settings.model_copy(update={"measure": False})
    verdict = court.judge(request.model_copy(update={"settings": settings}))
    checks = {check.name: check for check in verdict.checks if check.name in (INPUTS, OWN)}
    assert set(checks) == {INPUTS, OWN}, f"{verdict.status}: {verdict.reason}\n{verdict.details}"
    for check in checks.values():
        print(f"{member.id}: {check.name}: {check.outcome}, {check.figures}, {check.seen}")
    return verdict, checks


@pytest.mark.parametrize("member", chosen(tuple(FOUND)), ids=lambda member: member.id)
def test_what_reaches_beyond_is_found(court: Court, member: Member) -> None:
    verdict, checks = looked_at(court, member)
    name, figure = FOUND[member.id]
    for check in checks.values():
        found = {key for key, value in check.figures.items() if value}
        assert found == ({figure} if check.name == name else set()), check
    assert checks[name].outcome is CheckOutcome.FAIL
    assert miss(member, verdict) is None


@pytest.mark.parametrize("member", chosen(CLEAN), ids=lambda member: member.id)
def test_an_honest_program_is_asked_and_clean(court: Court, member: Member) -> None:
    verdict, checks = looked_at(court, member)
    assert miss(member, verdict) is None
    # One whose results differ from call to call is asked, and tells nothing but what it wrote.
    passed = {check.name for check in checks.values() if check.outcome is CheckOutcome.PASS}
    assert passed == set(checks) or {check.figures.get("written") for check in checks.values()} == {0}, checks
