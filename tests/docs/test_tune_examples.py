"""The kernels that the guide offers for `tune`: readable, tunable, and correct."""

from __future__ import annotations

from pathlib import Path

import pytest

from kernelproof.problems import open_suite
from kernelproof.runs.candidates import CandidateInput, read_candidates
from kernelproof.runs.tuning_template import read_template
from kernelproof.types import Severity, Status, VerifySettings
from kernelproof.verifier.engine.engine import Engine
from kernelproof.verifier.policy import review

FOLDER = Path(__file__).parents[2] / "docs" / "examples" / "tune"
EXAMPLES = [
    pytest.param(folder.name, given, id=f"{folder.name}/{given.id}")
    for folder in sorted(FOLDER.iterdir())
    for given in read_candidates(folder, open_suite(), None)
]


def source(given: CandidateInput) -> str:
    assert given.extraction.candidate is not None
    return given.extraction.candidate.source


@pytest.mark.parametrize(("backend", "given"), EXAMPLES)
def test_every_example_declares_a_space_that_can_be_searched(backend: str, given: CandidateInput) -> None:
    template = read_template(source(given))
    assert template.declared and template.allowed is not None and 16 <= template.allowed <= 128
    assert not [
        one for one in review(source(given), given.problem, backend) if one.severity is Severity.ERROR
    ]


@pytest.mark.slow
@pytest.mark.parametrize(("backend", "given"), [one for one in EXAMPLES if one.values[0] == "cpp"])
def test_the_cpu_examples_are_correct(backend: str, given: CandidateInput, tmp_path: Path) -> None:
    settings = VerifySettings(backend=backend, size="small", measure=False)
    with Engine(tmp_path) as engine:
        verdict = engine.verify(source(given), given.problem, settings)
    assert verdict.status is Status.CORRECT, verdict.reason


@pytest.mark.gpu
@pytest.mark.timeout(600)
@pytest.mark.parametrize(("backend", "given"), [one for one in EXAMPLES if one.values[0] == "cuda"])
def test_the_gpu_examples_are_correct(backend: str, given: CandidateInput, tmp_path: Path) -> None:
    """The first values and the last ones, which use everything that the kernel declares."""
    template = read_template(source(given))
    *_, last = template.combinations()
    settings = VerifySettings(backend=backend, measure=False)
    with Engine(tmp_path) as engine:
        for values in (template.original, last):
            verdict = engine.verify(template.filled(values), given.problem, settings)
            assert verdict.status is Status.CORRECT, (values, verdict.reason)
