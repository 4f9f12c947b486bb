"""A candidate's new memory is not zero until it is timed, and what asks for zeros gets them."""

from __future__ import annotations

import ctypes
from pathlib import Path

import numpy
import pytest
import torch

from kernelproof.types import Status
from kernelproof.verifier.contestant.arena import FILLS
from kernelproof.verifier.contestant.used_memory import USED, used_memory
from tests.referee.court import Court
from tests.referee.problems import as_candidate, text, written

CPU = torch.device("cpu")
KINDS = (torch.float16, torch.bfloat16, torch.float32, torch.float64)


def filled(fresh: torch.Tensor) -> bool:
    """Whether it is as `used_memory` makes new memory."""
    return bool((fresh.view(torch.uint8) == USED).float().mean() > 0.99)


def test_it_is_not_taken_for_a_margin() -> None:
    assert USED not in FILLS


@pytest.mark.parametrize("nbytes", [5000, 100_000, 3_000_000, 100_000_000])
def test_new_memory_is_filled_meanwhile(nbytes: int) -> None:
    with used_memory(CPU):
        kept = [torch.empty(nbytes, dtype=torch.uint8) for _ in range(2)]
        assert all(map(filled, kept))
        assert filled(torch.from_numpy(numpy.empty(nbytes, numpy.uint8)))
        assert not torch.zeros(nbytes, dtype=torch.uint8).any()
        assert not numpy.zeros(nbytes, numpy.uint8).any()
    assert not filled(torch.empty(nbytes, dtype=torch.uint8))


def test_what_fills_it_is_finite_and_large() -> None:
    pattern = torch.full((8,), USED, dtype=torch.uint8)
    assert all(100 < float(pattern.view(kind)[0]) < float("inf") for kind in KINDS)
    assert ctypes.c_int.from_buffer_copy(bytes([USED]) * 4).value > 1 << 30


LOOK = """
told = set()

def look(when):
    fresh = torch.empty(300_000).view(torch.uint8)
    found = when, (fresh == {used}).float().mean().item() > 0.99
    if found not in told:
        told.add(found)
        print(*found, flush=True)
"""


def test_a_candidate_has_it_until_it_is_timed(court: Court, tmp_path: Path) -> None:
    problem = text("return x.relu()", "torch.rand(64, 64)")
    looking = (
        as_candidate(problem)
        .replace("class ModelNew", LOOK.format(used=USED) + "\n\nclass ModelNew")
        .replace("pass", "look('constructed')")
        .replace("return", "look('called'); return")
    )
    untimed = court.verdict(looking, written(tmp_path, problem))
    timed = court.verdict(looking, written(tmp_path, problem), measure=True, measure_seconds=0.1)
    assert (untimed.status, timed.status) == (Status.CORRECT, Status.CORRECT)
    assert untimed.details.splitlines() == ["[stdout]", "constructed True", "called True"]
    assert timed.details.splitlines() == ["[stdout]", "constructed True", "called True", "called False"]
