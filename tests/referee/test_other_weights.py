"""Weights get other values once, after the first calls; and which probes are left out."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from torch import nn

from kernelproof.problems import read_problem
from kernelproof.types import Check, CheckOutcome, Flag, Problem, Rigor, Status, Verification
from kernelproof.verifier.referee.checks.weights import learned_constants, other_values
from tests.referee.court import Court
from tests.referee.problems import as_candidate, text, written

CORPUS = Path(__file__).parents[1] / "corpus"
LEFT_OUT = (CORPUS / "wrong" / "mixer_norms_without_scale.py").read_text()
FOLDED_ONCE = (CORPUS / "honest" / "mixer_norm_folded_once.py").read_text()
PROBLEM = text(
    "return self.linear(self.norm(x))",
    "torch.randn(33, 65)",
    "self.norm = nn.BatchNorm1d(features).eval(); self.linear = nn.Linear(features, features)",
    parameters="features",
    arguments="65",
)
USED = as_candidate(PROBLEM)
LAST = "self.last = nn.Linear(features, features)"
PROBLEM_OF = {
    "scales_packed_at_the_first_call": "exponential_scales",
    "rezero_branch_left_out": "rezero_block",
}
NORM = "self.norm = nn.BatchNorm1d(features).eval()"
FOLD = (
    "; self.scale = (norm.weight * (norm.running_var + norm.eps).rsqrt()).detach()"
    "; self.shift = norm.bias.detach() - norm.running_mean * self.scale"
)
FOLDED = "x * self.scale + self.shift"


def judged(court: Court, source: str, problem: Problem | str) -> Verification:
    verdict = court.verdict(source, problem)
    assert verdict.status is Status.CORRECT, f"{verdict.reason}\n{verdict.details}"
    return verdict


def look(verdict: Verification) -> Check:
    (check,) = (check for check in verdict.checks if check.name == "probe: other weights")
    return check


@pytest.fixture
def normed(tmp_path: Path) -> Problem:
    return written(tmp_path, PROBLEM)


@pytest.mark.ci
def test_a_norm_that_is_folded_once_is_a_flag(court: Court) -> None:
    verdict = judged(court, FOLDED_ONCE, "level3/2")
    assert verdict.flags == (Flag.WEIGHTS_SPECIALISED,)
    assert look(verdict).outcome is CheckOutcome.FAIL
    assert look(verdict).figures == {"changed": 12, "inputs": 0, "first": "token_norm.weight"}
    assert verdict.reason == "every check passed; weights_specialised"


@pytest.mark.ci
def test_norms_with_their_scale_are_right(court: Court) -> None:
    source = LEFT_OUT.replace("self.normed(x).transpose", "self.token_norm(x).transpose")
    source = source.replace("self.channel_mlp(self.normed(x))", "self.channel_mlp(self.channel_norm(x))")
    verdict = judged(court, source, "level3/2")
    assert verdict.flags == ()
    assert look(verdict).outcome is CheckOutcome.PASS


@pytest.mark.ci
def test_statistics_that_are_only_used_count_and_come_back(court: Court, normed: Problem) -> None:
    verdict = judged(court, USED, normed)
    assert verdict.flags == ()
    assert look(verdict).figures == {"changed": 6, "inputs": 0, "first": "norm.weight"}
    # The probes after it are asked with the initial weights: this one is right with no others.
    folded = USED.replace(NORM, f"{NORM}; norm = self.norm{FOLD}").replace("self.norm(x)", FOLDED)
    verdict = judged(court, folded, normed)
    assert verdict.flags == (Flag.WEIGHTS_SPECIALISED,)
    later = [check for check in verdict.checks if check.name.startswith("probe: batch")]
    assert later
    assert all(check.outcome is CheckOutcome.PASS for check in later)


@pytest.mark.ci
def test_weights_that_are_not_there_are_left_out(court: Court, normed: Problem) -> None:
    source = USED.replace(NORM, NORM.removeprefix("self.") + FOLD).replace("self.norm(x)", FOLDED)
    assert judged(court, source, normed).flags == (Flag.WEIGHTS_SPECIALISED,)


@pytest.mark.ci
@pytest.mark.parametrize("work", ["x / (1 + 1e-5) ** 0.5", "self.norm(x) - self.norm.bias"])
def test_constants_that_are_left_out_are_wrong(court: Court, normed: Problem, work: str) -> None:
    verdict = court.verdict(USED.replace("self.norm(x)", work), normed)
    assert verdict.status is Status.WRONG_OUTPUT, verdict.reason


SET_LATER = "self.scale = nn.Parameter(torch.empty(65)); self.scale.data[:] = 1"


@pytest.mark.ci
@pytest.mark.parametrize(("work", "used"), [("x * self.scale", True), ("x.clone()", False)])
def test_constants_that_no_function_here_sees_are_asked_about(
    court: Court, tmp_path: Path, work: str, used: bool
) -> None:
    problem = text("return x * self.scale", "torch.randn(33, 65)", SET_LATER)
    source = as_candidate(problem).replace("x * self.scale", work)
    verdict = judged(court, source, written(tmp_path, problem))
    assert (Flag.WEIGHTS_SPECIALISED in verdict.flags) is not used
    assert look(verdict).figures == {"changed": 1, "inputs": 0, "first": "scale"}


@pytest.mark.ci
def test_weights_under_other_names_may_be_used(court: Court, normed: Problem) -> None:
    source = USED.replace("self.norm", "self.first")
    verdict = judged(court, source, normed)
    assert verdict.flags == ()
    assert look(verdict).figures == {"changed": 2, "inputs": 0, "first": "linear.weight"}
    source = source.replace("self.linear", "self.last")
    verdict = judged(court, source, normed)
    assert verdict.flags == ()
    assert look(verdict).figures == {"changed": 1, "inputs": 0, "first": "linear.weight"}
    another = "; self.other = nn.Linear(features, features)"
    verdict = judged(court, source.replace(LAST, f"{LAST}{another}"), normed)
    assert verdict.flags == ()
    assert look(verdict).outcome is CheckOutcome.NOT_APPLICABLE


@pytest.mark.ci
@pytest.mark.parametrize(
    ("kept", "dropped"),
    [
        ("scales_packed_by_version", "scales_packed_at_the_first_call"),
        ("rezero_weight_renamed", "rezero_branch_left_out"),
    ],
)
def test_weights_that_are_looked_at_once_or_never_are_a_flag(court: Court, kept: str, dropped: str) -> None:
    problem = read_problem(CORPUS / "problems" / f"{PROBLEM_OF[dropped]}.py")
    verdict = judged(court, (CORPUS / "honest" / f"{kept}.py").read_text(), problem)
    assert verdict.flags == ()
    assert look(verdict).outcome is CheckOutcome.PASS
    verdict = judged(court, (CORPUS / "harmless" / f"{dropped}.py").read_text(), problem)
    assert verdict.flags == (Flag.WEIGHTS_SPECIALISED,)


@pytest.mark.ci
def test_tied_weights_stay_tied(court: Court, tmp_path: Path) -> None:
    tied = "self.a = nn.Linear(9, 9, bias=False); self.b = nn.Linear(9, 9, bias=False)"
    problem = text("return self.b(self.a(x))", "torch.randn(33, 9)", f"{tied}; self.b.weight = self.a.weight")
    apart = as_candidate(problem).replace("; self.b.weight = self.a.weight", "")
    for source in (as_candidate(problem), apart):
        verdict = judged(court, source, written(tmp_path, problem))
        assert verdict.flags == ()
        assert look(verdict).figures == {"changed": 2, "inputs": 0, "first": "a.weight"}


@pytest.mark.ci
def test_where_the_reference_cannot_do_with_all_others_constants_are_changed(
    court: Court, tmp_path: Path
) -> None:
    init = "self.scale = nn.Parameter(torch.ones(9)); self.roots = nn.Parameter(torch.rand(9))"
    problem = text(
        "return x * self.scale * torch.where(self.roots == self.first, 1.0, torch.nan)",
        "torch.randn(33, 9)",
        f"{init}; self.first = self.roots.detach().clone()",
    )
    source = as_candidate(problem)
    verdict = judged(court, source, written(tmp_path, problem))
    assert verdict.flags == ()
    assert look(verdict).figures == {"changed": 1, "inputs": 0, "first": "scale"}


@pytest.mark.ci
def test_a_process_that_ends_is_a_flag(court: Court, normed: Problem) -> None:
    ends = "        if float(self.norm.weight.max()) > 2:\n            import os; os._exit(3)\n"
    source = USED.replace("        return self.linear", ends + "        return self.linear")
    verdict = judged(court, source, normed)
    assert verdict.flags == (Flag.WEIGHTS_SPECIALISED,)
    assert "crash" in look(verdict).seen


GIVEN = text(
    "return x * scale + shift",
    "torch.randn(33, 65), torch.ones(65), torch.zeros(65)",
    names="x, scale, shift",
)


@pytest.mark.ci
@pytest.mark.parametrize(("work", "used"), [("x * scale + shift", True), ("x.clone()", False)])
def test_inputs_of_ones_and_zeros_get_other_values_too(
    court: Court, tmp_path: Path, work: str, used: bool
) -> None:
    source = as_candidate(GIVEN).replace("x * scale + shift", work)
    verdict = judged(court, source, written(tmp_path, GIVEN))
    assert (Flag.WEIGHTS_SPECIALISED in verdict.flags) is not used
    assert look(verdict).figures == {"changed": 0, "inputs": 2}


def test_only_what_is_learned_and_had_one_value_is_changed() -> None:
    model = nn.Sequential(nn.Linear(4, 4, bias=False), nn.BatchNorm1d(4), nn.PReLU())
    model.register_buffer("scale", torch.ones(4))
    assert learned_constants(model) == ["1.weight", "1.bias", "2.weight"]
    assert learned_constants(model.eval())[3:] == ["1.running_mean", "1.running_var"]
    norm = nn.BatchNorm1d(4).eval()
    assert learned_constants(norm) == ["weight", "bias", "running_mean", "running_var"]
    nn.init.normal_(norm.weight)
    nn.init.normal_(norm.bias)
    assert learned_constants(norm, drawn=["bias"]) == ["bias", "running_mean", "running_var"]


@pytest.mark.parametrize("value", [1.0, -3.0, 1e-6, 0.0])
def test_other_values_differ_everywhere_and_keep_the_sign(value: float) -> None:
    found = other_values(torch.full((3, 50), value), torch.Generator().manual_seed(1))
    assert found.unique().numel() == found.numel()
    assert float((found - value).abs().mean()) > 0.1
    if value:
        assert bool((found.sign() == (1 if value > 0 else -1)).all())


def test_other_values_differ_from_drawn_ones_too() -> None:
    drawn = torch.linspace(-1.0, 1.0, 50)
    found = other_values(drawn, torch.Generator().manual_seed(1))
    assert torch.equal(found.sign(), drawn.sign())
    assert float((found - drawn).abs().mean()) > 0.1


@pytest.mark.ci
@pytest.mark.parametrize("rigor", [Rigor.QUICK, Rigor.STANDARD])
def test_at_rigor_quick_it_is_recorded_which_probes_were_left_out(
    court: Court, tmp_path: Path, rigor: Rigor
) -> None:
    """No gap: probes only set flags, and a misaligned access costs more time than all other probes. But a
    record has to say what nobody asked, or the program looks as if it were right there."""
    problem = written(tmp_path, text("return torch.relu(x)", "torch.randn(34, 66)"))
    source = as_candidate(text("rows, columns = x.shape; return torch.relu(x)", ""))
    verdict = court.verdict(source, problem, rigor=rigor)
    assert verdict.status is Status.CORRECT, verdict.reason
    outcomes = {check.name.removeprefix("probe: "): check.outcome for check in verdict.checks}
    rank, offset = outcomes["one more dimension"], outcomes["offset inputs"]
    if rigor is Rigor.QUICK:
        assert (rank, offset) == (CheckOutcome.NOT_APPLICABLE, CheckOutcome.NOT_APPLICABLE)
        assert verdict.flags == ()
    else:
        assert (rank, offset) == (CheckOutcome.FAIL, CheckOutcome.PASS)
        assert verdict.flags == (Flag.SHAPE_SPECIALISED,)


RESTS = """
import torch
from torch import nn

class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        {init}

    def forward(self, x):
        {forward}
"""


@pytest.mark.ci
@pytest.mark.parametrize(
    ("init", "forward", "short"),
    [
        (
            "self.u = nn.Linear(9, 9, bias=False); nn.init.eye_(self.u.weight)",
            "torch.relu(x + self.u(x))",
            "2 * torch.relu(x)",
        ),
        (
            "self.norm = nn.LayerNorm(9)",
            "self.norm(x).amax(0)",
            "nn.functional.layer_norm(x, (9,)).amax(0) * self.norm.weight + self.norm.bias",
        ),
    ],
    ids=["identity", "positive scale"],
)
def test_what_is_right_with_the_weights_of_a_fresh_model_only_is_a_flag(
    court: Court, tmp_path: Path, init: str, forward: str, short: str
) -> None:
    problem = written(tmp_path, text(f"return {forward}", "torch.randn(99, 9)", init))
    verdict = judged(court, RESTS.format(init=init, forward=f"return {short}"), problem)
    assert (verdict.status, verdict.flags) == (Status.CORRECT, (Flag.WEIGHTS_SPECIALISED,)), verdict.reason
    assert judged(court, RESTS.format(init=init, forward=f"return {forward}"), problem).flags == ()


def test_an_identity_has_a_pattern_and_drawn_weights_have_none() -> None:
    model = nn.Module()
    for name, tensor in {
        "eye": torch.eye(9),
        "drawn": torch.randn(40),
        "short": torch.tensor([1.0, 0.0]),
    }.items():
        model.register_parameter(name, nn.Parameter(tensor))
    assert learned_constants(model) == ["eye"]


def test_scales_of_norms_get_either_sign() -> None:
    found = other_values(torch.ones(200), torch.Generator().manual_seed(1), either_sign=True)
    assert 50 < int((found < 0).sum()) < 150
    assert bool((found.abs() >= 0.5).all())
