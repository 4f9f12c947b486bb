"""What a candidate's processes write is kept with every verdict, cleaned and bounded."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from rich.console import Console

from kernelproof.problems import open_suite
from kernelproof.report.verification import print_verification
from kernelproof.types import Status, Verification, VerifySettings
from kernelproof.types.verification import VerifyRequest
from kernelproof.verifier.workers.client import OUTPUT_KEPT
from tests.referee.court import Court

pytestmark = pytest.mark.ci

HONEST = (Path(__file__).parents[1] / "corpus" / "honest" / "relu_warns.py").read_text()
QUIET = """
import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, x):
        return torch.clamp(x, min=0)
"""


def judged(court: Court, source: str, *, measure: bool = False) -> Verification:
    settings = VerifySettings(
        backend="cpp",
        size="small",
        trials=1,
        own_kernel=False,
        measure=measure,
        measure_seconds=0.2,
        threads=1,
    )
    problem = open_suite().find("level1/1")
    return court.judge(VerifyRequest(problem=problem, source=source, settings=settings, device="cpu"))


@pytest.mark.parametrize("measure", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_a_correct_candidates_words_are_in_its_record_and_on_screen(court: Court, measure: bool) -> None:
    verdict = judged(court, HONEST, measure=measure)
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
    verdict = judged(court, source)
    assert verdict.status is Status.WRONG_OUTPUT
    printed, _, warned = verdict.details.partition("[stderr]")
    assert "x last word" in printed
    assert len(printed) <= OUTPUT_KEPT + len("[stdout]\n\n")
    assert "no kernel for this device" in warned


@pytest.mark.slow
def test_who_writes_nothing_has_an_empty_record(court: Court) -> None:
    verdict = judged(court, QUIET, measure=True)
    assert (verdict.status, verdict.details) == (Status.CORRECT, "")
