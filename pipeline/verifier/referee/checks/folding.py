"""The first trial, and what it says of the weights: the reference's are copied over those of the same name,
unless that makes a candidate wrong which folded something into its own.

    self.conv.weight.data.mul_(scale)          # the scale that Model applies after the convolution

ModelNew is constructed from the same state of the generator as Model, so a layer that is drawn in the same
order has the reference's values already, and what differs may be meant. Copying the reference's values over
it undoes the folding. So a candidate that is wrong in the first trial, and had made such tensors, is
constructed afresh in a new process, keeps them, and is tried again on other inputs. This gives nobody
anything: weights under names of the candidate's own are never copied over either.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection

from kernelproof.types import CheckOutcome, Status
from kernelproof.verifier.referee.checks.trials import Trials
from kernelproof.verifier.referee.ledger import Ended, Ledger

Afresh = Callable[[Collection[str]], None]
"""Seats the candidate in a new process, where tensors of these names stay as ModelNew made them."""


def first_trial(trials: Trials, ledger: Ledger, differed: Collection[str], afresh: Afresh) -> frozenset[str]:
    """The first trial, with the reference's weights or else with those that ModelNew made.

    `differed`: names of the tensors that ModelNew made with other values. Returns the names of those that are
    kept so. Raises Ended as `Trials.first` does: with what failed by less, if both ways are wrong.
    """
    errors = len(ledger.errors)
    try:
        trials.first()
        return frozenset()
    except Ended as ended:
        by = _wrong_by(ledger, ended)
        if by is None or not differed:
            raise
        copied = ended
    weights = next(index for index, check in enumerate(ledger.checks) if check.name == "weights")
    before = ledger.since(weights, errors)
    try:
        afresh(differed)
        trials.first()
    except Ended as ended:
        if ended.status is Status.INFRASTRUCTURE_ERROR:
            raise
        still = _wrong_by(ledger, ended)
        if still is not None and still < by:
            _add(ledger, f"; with the reference's values over them it was wrong by {by:.3g} in norm")
            raise
        ledger.since(weights, errors)
        ledger.checks.extend(before[0])
        ledger.errors.extend(before[1])
        rest = "fails too" if still is None else f"is wrong by {still:.3g} in norm"
        _add(ledger, f"; with the {len(differed)} as ModelNew made them it {rest}")
        raise copied from None
    _add(ledger, f": with the reference's values over them the first trial was wrong by {by:.3g} in norm")
    return frozenset(differed)


def _wrong_by(ledger: Ledger, ended: Ended) -> float | None:
    """By how much the values were wrong in norm, relative to the reference's; None if something else was."""
    last = ledger.checks[-1] if ledger.checks else None
    if last is None or last.outcome is not CheckOutcome.FAIL or last.name != "values: drawn":
        return None
    found = last.figures.get("relative_norm")
    if ended.status is not Status.WRONG_OUTPUT or not isinstance(found, int | float):
        return None
    return float(found) if math.isfinite(found) else math.inf


def _add(ledger: Ledger, words: str) -> None:
    """Adds to what the check of the weights saw."""
    for index, check in enumerate(ledger.checks):
        if check.name == "weights":
            ledger.checks[index] = check.model_copy(update={"seen": check.seen + words})
