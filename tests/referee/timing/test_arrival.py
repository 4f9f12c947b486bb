"""What is looked at when a contestant replies: whether results are there."""

from __future__ import annotations

import random

import torch

from kernelproof.verifier.referee.timing.rounds import PLACES, Arrival
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
