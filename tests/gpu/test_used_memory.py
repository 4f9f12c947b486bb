"""A candidate's new memory on a GPU: what torch gives is filled, and what nobody uses is given back."""

from __future__ import annotations

import pytest
import torch

from kernelproof.verifier.contestant.used_memory import USED, give_back, used_memory

pytestmark = pytest.mark.gpu
GPU = torch.device("cuda", 0)
NBYTES = 96 << 20


@pytest.mark.parametrize("nbytes", [512, 100_000, 1 << 20, 3 << 20, 9 << 20, 40 << 20])
def test_new_memory_is_filled_and_given_back(nbytes: int) -> None:
    give_back(GPU)
    before = torch.cuda.memory_reserved(GPU)
    with used_memory(GPU, NBYTES):
        fresh = [torch.empty(nbytes, dtype=torch.uint8, device=GPU) for _ in range(2)]
        assert all(bool((each == USED).all()) for each in fresh)
        assert not torch.zeros(nbytes, dtype=torch.uint8, device=GPU).any()
    again = torch.cuda.memory_reserved(GPU)
    with used_memory(GPU, NBYTES):
        pass
    assert torch.cuda.memory_reserved(GPU) - again <= NBYTES  # what is in use takes a part of the first
    del fresh
    give_back(GPU)
    assert torch.cuda.memory_reserved(GPU) == before
