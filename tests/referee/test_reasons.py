"""What a verdict says beyond its figures: hints in its reason, and what the candidate's processes wrote."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from rich.console import Console

from kernelproof.report.verification import print_verification
from kernelproof.types import Status
from kernelproof.verifier.workers.client import OUTPUT_KEPT
from tests.referee.court import Court

pytestmark = pytest.mark.ci

PRODUCT = """
import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, a, b):
        if {when}:
            a, b = a.half().float(), b.half().float()
        return a @ b
"""
ALIKE = "the error is as large as products of TF32 or float16 operands would make it"


def test_operands_are_suspected_where_drawn_inputs_show_it(court: Court) -> None:
    verdict = court.verdict(PRODUCT.format(when="True"), "level1/4")
    assert verdict.status is Status.WRONG_OUTPUT
    assert verdict.reason.startswith("values: drawn: ")
    assert ALIKE in verdict.reason


def test_operands_are_not_suspected_after_exact_products_of_drawn_inputs(court: Court) -> None:
    verdict = court.verdict(PRODUCT.format(when="a.abs().max() > 100"), "level1/4")
    assert verdict.status is Status.WRONG_OUTPUT
    assert verdict.reason.startswith("values: large: ")
    assert verdict.errors[-1].relative_norm < 1e-3  # of the same size
    assert ALIKE not in verdict.reason


def test_operands_are_not_suspected_where_few_elements_are_off(court: Court) -> None:
    """As a race leaves them."""
    few = "out = a @ b\n        out[:, 0] *= 1.005\n        return out"
    source = PRODUCT.format(when="False").replace("return a @ b", few)
    verdict = court.verdict(source, "level1/4")
    assert verdict.reason.startswith("values: drawn: ")
    assert ALIKE not in verdict.reason


OWN = """
import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, features):
        super().__init__()
        torch.randn(7)  # so that the layer's values are not the reference's
        {layer} = nn.Linear(features, features)

    def forward(self, x, residual):
        return torch.relu({layer}(x)){more} + residual
"""
"""As the problem's reference, but for names and what is put in."""


def test_weights_under_other_names_are_named(court: Court) -> None:
    verdict = court.verdict(OWN.format(layer="self.mine", more=""), "level2/4")
    assert verdict.status is Status.WRONG_OUTPUT
    assert verdict.reason.startswith("values: drawn: ")
    assert verdict.reason.endswith(
        "2 of the reference's 2 weights have no partner of the same name, shape and dtype in ModelNew "
        "(linear.weight, linear.bias), and 2 of ModelNew's kept the initial values that it gave them "
        "(mine.weight, mine.bias): names and shapes of its state_dict() must equal the reference's"
    )


def test_many_and_long_names_are_cut(court: Court) -> None:
    many = "self.mine = nn.ParameterDict({f'{n}' * 80: torch.randn(1) for n in range(9)})"
    source = OWN.format(layer="self.other", more="").replace("torch.randn(7)", many)
    verdict = court.verdict(source, "level2/4")
    assert "11 of ModelNew's kept" in verdict.reason
    assert ", ...): names" in verdict.reason
    assert "0" * 40 in verdict.reason
    assert "0" * 61 not in verdict.reason


def test_weights_that_match_are_not_blamed(court: Court) -> None:
    verdict = court.verdict(OWN.format(layer="self.linear", more=" * 2"), "level2/4")
    assert verdict.status is Status.WRONG_OUTPUT
    assert "partner" not in verdict.reason


def test_weights_are_not_blamed_for_rounding(court: Court) -> None:
    source = OWN.format(layer="self.mine", more=" * 1.001").replace("torch.randn(7)", "pass")
    verdict = court.verdict(source, "level2/4")
    assert verdict.status is Status.WRONG_OUTPUT
    assert "partner" not in verdict.reason


def test_an_exception_without_a_message_names_its_line(court: Court) -> None:
    source = PRODUCT.format(when="False").replace("return a @ b", "assert a.shape == b.shape[:1]")
    verdict = court.verdict(source, "level1/4")
    assert verdict.status is Status.RUNTIME_ERROR
    assert verdict.reason == "AssertionError at `assert a.shape == b.shape[:1]`"


HONEST = (Path(__file__).parents[1] / "corpus" / "honest" / "relu_warns.py").read_text()


@pytest.mark.parametrize("measure", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_a_correct_candidates_words_are_in_its_record_and_on_screen(court: Court, measure: bool) -> None:
    verdict = court.verdict(HONEST, "level1/1", measure=measure, measure_seconds=0.2)
    assert verdict.status is Status.CORRECT
    printed, _, warned = verdict.details.partition("[stderr]")
    assert printed.startswith("[stdout]\ninputs: (")
    assert "no kernel for this device" in warned
    assert "warning: the first call may be slow" in warned
    assert "\x1b" not in verdict.details and "[31m" not in verdict.details
    screen = io.StringIO()
    print_verification(verdict, Console(file=screen, width=200))
    assert "warning: the first call may be slow" in screen.getvalue()


def test_a_wrong_candidates_words_are_kept_too_and_the_last_of_many(court: Court) -> None:
    source = HONEST.replace("min=0", "min=1") + "print('x' * 100_000 + ' last word', flush=True)\n"
    verdict = court.verdict(source, "level1/1")
    assert verdict.status is Status.WRONG_OUTPUT
    printed, _, warned = verdict.details.partition("[stderr]")
    assert "x last word" in printed
    assert len(printed) <= OUTPUT_KEPT + len("[stdout]\n\n")
    assert "no kernel for this device" in warned
