"""How many decoys a candidate needs, by how slow it is."""

from __future__ import annotations

import random

from kernelproof.types import VerifySettings
from kernelproof.verifier.referee.inputs.variants import VARIANTS
from kernelproof.verifier.referee.timing.clock import Round
from kernelproof.verifier.referee.timing.rounds import Decoys
from kernelproof.verifier.referee.timing.stopping import StoppingRule

RULE = StoppingRule.of(VerifySettings())


def rounds(candidate_ms: float) -> list[Round]:
    times = [candidate_ms] * 2
    return [Round("BC", [1.0] * 2, times, sum(times) + 1, 3.0) for _ in range(8)]


def decoys() -> Decoys:
    return Decoys(VARIANTS, random.Random(3))


def test_a_candidate_of_equal_speed_needs_each_variant_and_two_decoys() -> None:
    made, seen = decoys(), []
    while made.are_missing(rounds(1.0), RULE):
        seen.append({variant.name for variant in made.take(4)})
    assert len(seen) >= 2
    assert set().union(*seen) == {variant.name for variant in VARIANTS}


def test_one_decoy_is_enough_of_a_slower_candidate() -> None:
    for candidate_ms in (3.0, 25.0):  # clearly slower, far slower
        made = decoys()
        assert made.are_missing(rounds(candidate_ms), RULE)
        made.take(2)
        assert not made.are_missing(rounds(candidate_ms), RULE)


def test_a_far_slower_candidate_that_holds_the_device_long_needs_none() -> None:
    assert not decoys().are_missing(rounds(400.0), RULE)
