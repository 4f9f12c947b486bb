"""A candidate's new memory on a GPU: what torch gives is filled, and what nobody uses is given back."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.gpu
ASKING = """
import torch
from kernelproof.verifier.contestant.used_memory import USED, give_back, used_memory

gpu, most = torch.device("cuda", 0), 96 << 20
kept = [torch.zeros(n, device=gpu) for n in (1, 100_000, 500_000)]  # as weights: holes lie beside them
before = torch.cuda.memory_reserved(gpu)
for nbytes in (512, 100_000, 1 << 20, 3 << 20, 9 << 20, 40 << 20):
    for call in range(4):
        with used_memory(gpu, most):
            fresh = [torch.empty(nbytes, dtype=torch.uint8, device=gpu) for _ in range(2)]
            assert all(bool((each == USED).all()) for each in fresh), (nbytes, call)
        for each in fresh:
            each.zero_()
    assert torch.cuda.memory_reserved(gpu) - before < 4 * most, nbytes
    del fresh, each
    give_back(gpu)
    assert torch.cuda.memory_reserved(gpu) <= before, nbytes
assert not any(each.any() for each in kept)
"""


def test_new_memory_is_filled_and_given_back() -> None:
    done = subprocess.run(
        [sys.executable, "-c", ASKING],
        capture_output=True,
        text=True,
        check=False,
        cwd=Path(__file__).parents[2],
    )
    assert done.returncode == 0, done.stderr
