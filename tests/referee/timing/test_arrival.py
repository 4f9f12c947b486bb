"""What is looked at when a contestant replies: whether results are there, and the proof that it flushed."""

from __future__ import annotations

import random

import pytest
import torch

from kernelproof.verifier.contestant.flush import Flush
from kernelproof.verifier.referee.timing.rounds import (
    LEFT_OUT,
    OVERWRITTEN,
    PLACES,
    SAMPLED,
    Arrival,
    flush_failure,
)
from kernelproof.verifier.workers.shared_memory import in_memory


def places(count: int) -> list[list[torch.Tensor]]:
    return [[torch.zeros(50, 40), torch.zeros(1, dtype=torch.int64)] for _ in range(count)]


def test_results_that_were_there_stay_what_they_are() -> None:
    results = places(16)
    arrival = Arrival(results, random.Random(1))
    for outputs in results:
        outputs[0].normal_()
    arrival.look()
    assert not arrival.changed()


def test_not_a_number_is_what_it_was() -> None:
    results = [[torch.full((9,), torch.nan)]]
    arrival = Arrival(results, random.Random(1))
    arrival.look()
    assert not arrival.changed()


def test_two_late_results_of_sixteen_are_found_in_nearly_every_second_block() -> None:
    source = random.Random(2)
    found = 0
    for _ in range(400):
        results = places(16)
        arrival = Arrival(results, source)
        arrival.look()
        for outputs in results[-2:]:
            outputs[0].fill_(1.0)
        found += arrival.changed()
    by_chance = 1 - (12 * 11) / (16 * 15)
    assert PLACES == 4
    assert abs(found / 400 - by_chance) < 0.1


def test_outputs_of_any_strides_are_looked_at_where_they_lie() -> None:
    swapped = torch.zeros(6, 5).t()
    spread = torch.zeros(4, 10)[:, ::2]
    for output in (swapped, spread, torch.zeros(3, dtype=torch.complex64), torch.zeros((), dtype=torch.bool)):
        arrival = Arrival([[output]], random.Random(3))
        arrival.look()
        output.fill_(1)
        assert arrival.changed()
        assert in_memory(output).data_ptr() == output.data_ptr()


def test_outputs_without_elements_say_nothing() -> None:
    arrival = Arrival([[torch.zeros(0, 3)]], random.Random(4))
    arrival.look()
    assert not arrival.changed()


def test_a_thousandth_of_a_large_input_that_is_changed_is_seen() -> None:
    """Inputs of which the referee has no copy: a handful of elements would miss most changes."""
    found, source = 0, random.Random(5)
    for number in range(50):
        views = [torch.zeros(300_000)]
        sample = Arrival([views], source, SAMPLED)
        sample.look()
        views[0][number::1000] = 1.0
        found += sample.changed()
    assert found >= 45


SEED, CALLS = 7, 5


class Steps(Flush):
    """Stands for the flush of a GPU (tests/gpu/test_flush.py): a chain in which each step needs the last."""

    def __init__(self) -> None:
        super().__init__(0, torch.device("cpu"))
        self.sum = 0

    def begin(self, seed: int) -> None:
        self.sum = seed

    def __call__(self) -> None:
        self.sum = (self.sum * 0x2C1B3C6D + 1) % 2**31

    @property
    def proof(self) -> int:
        return self.sum


def proof_of(calls: int, *, spoilt: bool = False) -> int:
    """What a process sends. `spoilt`: a kernel wrote into its flush after the second call."""
    flush = Steps()
    flush.begin(SEED)
    for call in range(calls):
        flush.sum ^= spoilt and call == 2
        flush()
    return flush.proof


@pytest.mark.parametrize(
    ("proof", "failure"),
    [
        (proof_of(CALLS), None),
        *((proof_of(calls), LEFT_OUT) for calls in range(CALLS)),
        (None, LEFT_OUT),
        ("0", LEFT_OUT),
        (proof_of(CALLS, spoilt=True), OVERWRITTEN),
        (proof_of(CALLS + 1), OVERWRITTEN),
    ],
)
def test_only_what_fewer_flushes_give_is_said_to_be_left_out(proof: object, failure: str | None) -> None:
    assert flush_failure(Steps(), proof, SEED, CALLS) == failure
