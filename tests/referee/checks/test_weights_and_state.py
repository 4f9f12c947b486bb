"""Weights that ModelNew folds something into stay as it made them, and what the reference updates follows."""

from __future__ import annotations

from pathlib import Path

import pytest

from kernelproof.problems import read_problem
from kernelproof.types import Check, CheckOutcome, Flag, Status, Verification
from tests.referee.court import Court
from tests.referee.problems import as_candidate, text, written

pytestmark = pytest.mark.ci

CORPUS = Path(__file__).parents[2] / "corpus"
LEVEL = "level2/1"
FOLDED = (CORPUS / "honest" / "conv_scale_folded_in_place.py").read_text()
SWIGLU = (CORPUS / "honest" / "swiglu_norm_folded_in_place.py").read_text()
STATED = text(
    "self.calls += 1; return self.linear(x) * 3.0 + self.calls.clamp(max=2)",
    "torch.randn(33, 65)",
    'self.linear = nn.Linear(65, 65); self.register_buffer("calls", torch.zeros(1))',
)


def weights(verdict: Verification) -> Check:
    """The one look at the weights."""
    (check,) = (check for check in verdict.checks if check.name == "weights")
    return check


def test_what_is_folded_is_kept_and_said(court: Court) -> None:
    verdict = court.verdict(FOLDED, LEVEL)
    check = weights(verdict)
    assert verdict.status is Status.CORRECT, f"{verdict.reason}\n{verdict.details}"
    assert check.figures == {"reference": 2, "candidate": 2, "matched": 2, "equal_before": 0, "kept": 2}
    assert "folded: kept 2 as ModelNew made them (conv.bias, conv.weight)" in check.seen
    assert "the first trial was wrong by 0.5" in check.seen
    assert all(error.wrong == 0 for error in verdict.errors)
    (unchanged,) = (check for check in verdict.checks if check.name == "state_unchanged")
    assert unchanged.figures["compared"] == 2


def test_only_what_differed_is_kept(court: Court) -> None:
    check = weights(court.verdict(SWIGLU, "level3/6"))
    assert (check.figures["equal_before"], check.figures["kept"]) == (1, 3)


def test_numbers_drawn_on_import_move_nothing(court: Court) -> None:
    """ModelNew is constructed from the seed's state whatever was drawn before."""
    source = FOLDED.replace("class ModelNew", "torch.randn(1000)\ntorch.manual_seed(5)\n\n\nclass ModelNew")
    source = source.replace(".mul_(scale)", ".mul_(1.0)").replace("self.conv(x)", "self.conv(x).mul(2.0)")
    verdict = court.verdict(source, LEVEL)
    assert verdict.status is Status.CORRECT, verdict.reason
    assert weights(verdict).figures == {"reference": 2, "candidate": 2, "matched": 2, "equal_before": 2}


def test_another_order_of_drawing_gets_the_references_values(court: Court) -> None:
    source = SWIGLU.replace(
        "        with torch.no_grad():\n", "        with torch.no_grad():\n            return\n"
    )
    gate = "        self.gate = nn.Linear(features, hidden, bias=False)\n"
    up = gate.replace("gate", "up")
    source = source.replace(gate + up, up + gate).replace("+ self.eps)", "+ self.eps) * self.norm.weight")
    verdict = court.verdict(source, "level3/6")
    assert verdict.status is Status.CORRECT, verdict.reason
    assert "kept" not in weights(verdict).figures
    assert weights(verdict).figures["equal_before"] == 2


def test_who_is_wrong_both_ways_is_told_of_the_lesser_error(court: Court) -> None:
    wrong = court.verdict(FOLDED.replace(".amin(dim=1", ".mul(1.001).amin(dim=1"), LEVEL)
    assert wrong.status is Status.WRONG_OUTPUT
    assert "the error is 0.001 of the result in norm" in wrong.reason
    assert "with the reference's values over them it was wrong by 0.499" in weights(wrong).seen
    (error,) = wrong.errors or (None,)
    assert error is None or error.relative_norm < 0.01

    wrong = court.verdict(FOLDED.replace(".amin(dim=1", ".mul(1.998).amin(dim=1"), LEVEL)
    assert "the error is 0.001 of the result in norm" in wrong.reason
    assert "with the 2 as ModelNew made them it is wrong by 0.998 in norm" in weights(wrong).seen


def test_who_folds_and_fails_when_made_again_is_told_of_the_first(court: Court) -> None:
    again = "import pathlib\nfrom torch import nn\nimport torch\n"
    source = FOLDED.replace("from torch import nn\n", again).replace(
        "return self.conv(x)",
        "return (self.conv(x) if float(self.conv.weight.abs().max()) < 0.12 else 1 / 0)",
    )
    verdict = court.verdict(source, LEVEL)
    assert verdict.status is Status.WRONG_OUTPUT
    assert "with the 2 as ModelNew made them it fails too" in weights(verdict).seen


def test_a_state_begins_anew_with_the_candidate(court: Court, tmp_path: Path) -> None:
    """The reference's own state had moved on in the first trial: it starts again beside the new process."""
    folds = "with torch.no_grad(): self.linear.weight.mul_(3.0), self.linear.bias.mul_(3.0)"
    source = (
        as_candidate(STATED)
        .replace("* 3.0 ", "")
        .replace("\n\n    def forward", f"\n        {folds}\n\n    def forward")
    )
    verdict = court.verdict(source, written(tmp_path, STATED))
    assert verdict.status is Status.CORRECT, f"{verdict.reason}\n{verdict.details}"
    assert verdict.flags == ()
    assert weights(verdict).figures["kept"] == 2


def test_statistics_still_follow_beside_a_folded_weight(court: Court) -> None:
    source = (CORPUS / "honest" / "batch_norm_train_statistics.py").read_text()
    norm = "self.norm = nn.BatchNorm2d(channels)\n"
    assert norm in source and "norm.weight" in source
    source = source.replace("norm.weight", "0.5 * norm.weight")
    drawn = "".join(f"        nn.init.normal_(self.norm.{name})\n" for name in ("weight", "bias"))
    source = source.replace(norm, norm + drawn + "        self.norm.weight.data.mul_(2.0)\n")
    problem = read_problem(CORPUS / "problems" / "batch_norm_train.py")
    verdict = court.verdict(source, problem)
    assert verdict.status is Status.CORRECT, verdict.reason
    assert (verdict.flags, weights(verdict).figures["kept"]) == ((), 1)


@pytest.mark.slow
def test_what_is_kept_is_kept_by_a_second_pair(court: Court) -> None:
    verdict = court.verdict(FOLDED, LEVEL, measure=True, rigor="publish", measure_seconds=0.3)
    assert verdict.status is Status.CORRECT, f"{verdict.reason}\n{verdict.details}"
    looks = [check for check in verdict.checks if check.name == "weights"]
    assert len(looks) > 1
    assert all(check.figures["kept"] == 2 for check in looks)
    assert Flag.STATE_NOT_UPDATED not in verdict.flags


PROBLEM = CORPUS / "problems" / "batch_norm_train.py"
CANDIDATE = (CORPUS / "honest" / "batch_norm_train_statistics.py").read_text()
MEAN = "norm.running_mean.lerp_(mean, norm.momentum)"
VARIANCE = "norm.running_var.lerp_(variance * (count / (count - 1)), norm.momentum)"
COUNT = "norm.num_batches_tracked += 1"


def judged(court: Court, *updates: str) -> Verification:
    """The verdict on the honest candidate with these updates of the state in place of its own."""
    first, *others = (f"        {update}\n" for update in (MEAN, VARIANCE, COUNT))
    assert all(CANDIDATE.count(line) == 1 for line in (first, *others))
    source = CANDIDATE.replace(first, f"        {'; '.join(updates) or 'pass'}\n")
    for line in others:
        source = source.replace(line, "")
    return court.verdict(source, read_problem(PROBLEM))


def look(verdict: Verification) -> Check:
    """Its look at what the reference updates."""
    return next(check for check in verdict.checks if check.name == "state_updated")


def test_statistics_that_follow_are_seen(court: Court) -> None:
    verdict = judged(court, MEAN, VARIANCE, COUNT)
    check = look(verdict)
    assert (verdict.status, verdict.flags) == (Status.CORRECT, ())
    assert check.outcome is CheckOutcome.PASS
    assert check.figures == {"compared": 3, "others": 0, "not_there": 0}


@pytest.mark.parametrize(
    ("updates", "name", "others"),
    [
        ((), "norm.num_batches_tracked", 3),
        ((MEAN, COUNT), "norm.running_var", 1),
        ((MEAN, VARIANCE), "norm.num_batches_tracked", 1),
        ((MEAN, VARIANCE.replace("count / (count - 1)", "1.1"), COUNT), "norm.running_var", 1),
    ],
    ids=["none", "no variance", "no count", "another variance"],
)
def test_what_does_not_follow_is_a_flag(
    court: Court, updates: tuple[str, ...], name: str, others: int
) -> None:
    verdict = judged(court, *updates)
    check = look(verdict)
    assert verdict.status is Status.CORRECT
    assert verdict.flags == (Flag.STATE_NOT_UPDATED,)
    assert check.figures["others"] == others
    assert check.seen.startswith(name)
    assert check.outcome is CheckOutcome.FAIL


def test_buffers_that_are_not_there_are_said(court: Court) -> None:
    verdict = judged(court, "norm._buffers.pop('running_mean', None)", VARIANCE, COUNT)
    check = look(verdict)
    assert verdict.flags == (Flag.STATE_NOT_UPDATED,)
    assert (check.figures["compared"], check.figures["not_there"]) == (2, 1)
    assert check.seen == "norm.running_mean is not there"


def test_what_the_reference_leaves_alone_must_stay(court: Court) -> None:
    verdict = judged(court, "norm.bias += 0.0001")
    assert verdict.status in (Status.MUTATED_INPUT, Status.WRONG_OUTPUT)
