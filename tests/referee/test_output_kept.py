"""What a candidate's processes write is kept with every verdict, cleaned and bounded."""

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
