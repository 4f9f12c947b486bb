"""Time that is not on the candidate's own clock, and that an honest program can cause."""

from __future__ import annotations

from kernelproof.verifier.referee.timing import claim, clock


def test_what_is_used_while_held_is_claimed_by_nobody_and_convicts_nobody() -> None:
    """The candidate is as fast as the baseline, and did half of each block's work before it."""
    early = 8.0
    rounds = [
        clock.Round("BC", [1.0] * 16, [0.5] * 16, 16 * 1.0 + 8.0, 16 * 1.5, held_ms=early) for _ in range(24)
    ]
    assert claim.conclude(rounds, backend="cuda").speedup <= claim.REACH
    assert not clock.hides_work(rounds)
