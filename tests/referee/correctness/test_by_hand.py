"""Functions that kernels make of exponentials, where results vanish beside their terms."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from kernelproof.verifier.referee.correctness.oracle import Oracle
from kernelproof.verifier.referee.inputs.variants import VARIANTS
from tests.referee.problems import CPU, oracle_of, text

BY_NAME = {variant.name: variant for variant in VARIANTS}
Form = Callable[[torch.Tensor], torch.Tensor]


def verdict(oracle: Oracle, variant: str, form: Form) -> tuple[str, bool]:
    """What excuses this way to compute it on the variant, and whether it is wrong."""
    arguments = BY_NAME[variant].apply(oracle.loaded.draw(3, CPU), 5)
    assert arguments is not None
    expected = oracle.expected(variant, arguments, 0, forgiving=True)
    judged = oracle.judge(expected, [form(arguments[0])])
    return judged.excused or "", judged.wrong is not None


@pytest.mark.parametrize(
    ("forward", "variant", "form"),
    [
        ("F.silu(x)", "negative", lambda x: x * (0.5 + 0.5 * torch.tanh(0.5 * x))),
        ("F.softplus(x)", "negative", lambda x: torch.log(1 + torch.exp(x))),
        ("torch.tanh(x)", "tiny", lambda x: 1 - 2 / (torch.exp(2 * x) + 1)),
        ("F.gelu(x)", "negative", lambda x: 0.5 * x * (1 + torch.erf(x * 0.70710678).clamp(min=-0.99999994))),
    ],
)
def test_textbook_forms_are_not_wrong_where_their_results_vanish(
    tmp_path: Path, forward: str, variant: str, form: Form
) -> None:
    oracle = oracle_of(tmp_path, text(f"return {forward}", "0.25 * torch.randn(64, 300)"))
    excuse, wrong = verdict(oracle, variant, form)
    assert not wrong
    assert "made of exponentials" in excuse


@pytest.mark.parametrize(
    ("forward", "variant", "form"),
    [
        ("F.silu(x)", "negative", lambda x: x * 1e-4),
        ("F.softplus(x)", "negative", lambda x: torch.full_like(x, 1e-4)),
        ("torch.tanh(x)", "tiny", lambda x: 0.98 * x),
        ("torch.tanh(x)", "signed", lambda x: torch.tanh(x) + 1e-4 * torch.randn_like(x)),
        ("torch.relu(x)", "negative", lambda x: torch.relu(x) + 1e-7),
        ("x * 2", "tiny", lambda x: x * 2 + 4e-8),
    ],
)
def test_more_than_such_a_form_costs_is_wrong(tmp_path: Path, forward: str, variant: str, form: Form) -> None:
    oracle = oracle_of(tmp_path, text(f"return {forward}", "0.25 * torch.randn(64, 300)"))
    assert verdict(oracle, variant, form)[1]
