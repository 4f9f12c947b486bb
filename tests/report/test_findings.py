"""What a measured speedup says in words."""

from __future__ import annotations

import math

import pytest

from kernelproof.report import findings
from kernelproof.types import Interval, Pace, Status
from kernelproof.verifier.referee.timing import claim, clock
from kernelproof.verifier.referee.timing.pace import resolution_of, unresolved_because
from tests.db import samples


def said(speedup: float, low: float, high: float, pace: Pace, because: str | None = None) -> str:
    return findings.finding(speedup, Interval(low=low, high=high), pace, because)


@pytest.mark.parametrize(
    ("speedup", "low", "high", "pace", "words"),
    [
        (1.2345, 1.1801, 1.3299, Pace.FASTER, "1.23× [1.18, 1.33] faster"),
        (0.0706, 0.0685, 0.0951, Pace.SLOWER, "0.071× [0.069, 0.095] slower"),
        (0.00412, 0.00401, 0.00433, Pace.SLOWER, "0.0041× [0.0040, 0.0043] slower"),
        (24.33, 20.21, 31.0, Pace.FASTER, "24.3× [20.2, 31.0] faster"),
        (1034.0, 1001.2, 1100.0, Pace.FASTER, "1034× [1001, 1100] faster"),
        (1.0, 0.99, 1.004, Pace.SAME, "1.00× [0.99, 1.00] same"),
    ],
)
def test_a_finding_has_the_digits_that_say_something(
    speedup: float, low: float, high: float, pace: Pace, words: str
) -> None:
    assert said(speedup, low, high, pace) == words


@pytest.mark.parametrize(
    ("low", "high", "spread", "words"),
    [
        (0.9, 1.1, 0.0, "may be either: holds 1"),
        (1.2, 1.4, 0.67, "within the noise of ±201 %"),
        (1.2, 1.4, math.inf, "too few rounds"),
    ],
)
def test_each_reason_of_an_interval_has_a_short_form(
    low: float, high: float, spread: float, words: str
) -> None:
    because = unresolved_because(Interval(low=low, high=high), resolution_of(spread))
    assert said(1.2, low, high, Pace.UNRESOLVED, because).endswith(f"unresolved ({words})")


def measured(blocks: list[float], alone: float) -> str:
    """The finding of rounds whose baseline took these milliseconds, and `alone` after they were over."""
    rounds = [clock.Round("BC", [ms] * 4, [1.0] * 4, 6.0, 4 * ms + 2) for ms in blocks]
    told = claim.conclude(rounds, backend="cuda", alone={0: [clock.Alone([alone] * 4, 4 * alone + 2)] * 8})
    assert told.unresolved_because is not None
    return findings.finding_of(told)


def test_what_the_referee_doubts_has_a_short_form() -> None:
    assert "unresolved (too wide: ±" in measured([1.2 * 1.3**n for n in range(12)], 30.0)
    assert "unresolved (unsteady" in measured([1.2, 1.2, 1.2, 1.5] * 4, 1.6)
    assert "unresolved (busy machine" in measured([2.0] * 12, 1.1)


def test_a_reason_without_a_short_form_is_said_as_it_is() -> None:
    assert said(1.2, 1.1, 1.3, Pace.UNRESOLVED, "the moon was full").endswith("(the moon was full)")
    assert said(1.2, 1.1, 1.3, Pace.UNRESOLVED).endswith("unresolved (the times vary too much)")


def test_what_is_bounded_says_by_what() -> None:
    plain = samples.measurement(2.0)
    at_its_end = {"speedup_interval": Interval(low=plain.speedup, high=2.5), "inside_ms": 0.4}
    assert findings.bound_words(plain.model_copy(update=at_its_end)) == (
        "bounded by the referee's clock: it surely shows no more, while the candidate's own says 0.400 ms"
    )
    assert findings.bound_words(plain) == ""


def test_a_score_says_that_noise_lowered_it() -> None:
    def score(low: float, pace: Pace) -> str:
        return findings.score_words(Interval(low=low, high=3.0), pace)

    assert score(1.18, Pace.FASTER) == "1.18, the interval's lower end"
    assert score(0.93, Pace.UNRESOLVED) == "0.93, the interval's lower end, which noise may have lowered"
    assert score(1.62, Pace.UNRESOLVED) == "1, not 1.62: an unresolved speedup counts as 1 at most"
    assert findings.lowered(5.7, Pace.UNRESOLVED) == "counts as 1"
    assert not findings.lowered(0.9, Pace.UNRESOLVED) and not findings.lowered(5.7, Pace.FASTER)


def test_paces_are_counted() -> None:
    assert (
        findings.tally(["slower", "faster", "unresolved", "faster"]) == "2 faster · 1 slower · 1 unresolved"
    )
    assert findings.tally([]) == ""


def test_the_headline_is_the_whole_result() -> None:
    right = samples.verification(samples.problem(), speedup=2.0)
    assert right.measurement is not None
    m = right.measurement
    expected = f"correct · {findings.finding_of(m)} · 0.500 ms against 1.00 ms · attempt 1"
    assert findings.headline(Status.CORRECT, right, attempt=1) == expected
    reason = "values: drawn: output 0: 12 of 64 elements wrong, first at [0, 6]: expected 1, got 2; and more"
    wrong = right.model_copy(update={"status": Status.WRONG_OUTPUT, "reason": reason, "measurement": None})
    expected = "wrong_output · values: drawn: output 0: 12 of 64 elements wrong · attempt 3"
    assert findings.headline(wrong.status, wrong, attempt=3) == expected
    assert findings.headline(Status.EMPTY, None, "the answer is empty") == "empty · the answer is empty"
    assert findings.headline(None, None) == "in progress"
