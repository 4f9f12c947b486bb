"""What the reason of a wrong output says beyond its figures: only what the trials bear out."""

from __future__ import annotations

from pipeline.nouns import Status, Verification, VerifySettings
from pipeline.problems import open_suite
from pipeline.referee.request import VerifyRequest
from tests.referee.court import Court

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


def judged(court: Court, source: str, problem: str) -> Verification:
    settings = VerifySettings(
        backend="cpp", size="small", trials=1, own_kernel=False, measure=False, threads=1
    )
    return court.judge(
        VerifyRequest(problem=open_suite().find(problem), source=source, settings=settings, device="cpu")
    )


def test_operands_are_suspected_where_drawn_inputs_show_it(court: Court) -> None:
    verdict = judged(court, PRODUCT.format(when="True"), "level1/4")
    assert verdict.status is Status.WRONG_OUTPUT
    assert verdict.reason.startswith("values: drawn: ")
    assert ALIKE in verdict.reason


def test_operands_are_not_suspected_after_exact_products_of_drawn_inputs(court: Court) -> None:
    verdict = judged(court, PRODUCT.format(when="a.abs().max() > 100"), "level1/4")
    assert verdict.status is Status.WRONG_OUTPUT
    assert verdict.reason.startswith("values: large: ")
    assert verdict.errors[-1].relative_norm < 1e-3  # of the same size
    assert ALIKE not in verdict.reason
