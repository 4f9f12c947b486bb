"""Triton on a real GPU: compiled ahead, launched, told from torch.compile's kernels, and timed."""

from __future__ import annotations

from pathlib import Path

import pytest

from kernelproof.types import BuildState, Origin, Status, Verification, VerifySettings
from kernelproof.verifier.engine.engine import Engine
from tests.backends import triton_programs as programs

pytestmark = pytest.mark.gpu

SETTINGS = VerifySettings(backend="triton", trials=1, measure_seconds=1.0)
INDUCTOR = programs.RELU.replace(
    programs.LAUNCH,
    "out = getattr(torch, 'com' + 'pile')(torch.relu)(x)",
).replace("relu_kernel", "triton_poi_fused_relu_0")
"""Its own function has the name of the kernel of torch.compile, whose name the source hides."""


def judged(engine: Engine, source: str, folder: Path) -> Verification:
    return engine.verify(source, programs.problem(folder), SETTINGS)


@pytest.mark.parametrize(
    "source", [programs.RELU, programs.TUNED, programs.NO_GPU], ids=["one", "tuned", "item"]
)
def test_its_kernel_is_its_own_and_timed(engine: Engine, tmp_path: Path, source: str) -> None:
    source = source.replace(" + x.sum().item()", " + 0 * x.sum().item()")
    verdict = judged(engine, source, tmp_path)
    assert verdict.status is Status.CORRECT, (verdict.reason, verdict.details)
    assert verdict.flags == () and verdict.measurement is not None
    assert verdict.kernels is not None
    assert ("relu_kernel", Origin.JIT) in [(each.name, each.origin) for each in verdict.kernels.launches]
    (build,) = verdict.builds
    assert build.state is BuildState.OK and build.duration_s > 0


@pytest.mark.parametrize(
    ("source", "status"),
    [
        (programs.WRONG, Status.WRONG_OUTPUT),
        (programs.NO_LAUNCH, Status.NO_CUSTOM_KERNEL),
        (programs.DECOY, Status.NO_CUSTOM_KERNEL),
        (programs.UNDEFINED, Status.BUILD_ERROR),
        (INDUCTOR, Status.NO_CUSTOM_KERNEL),
    ],
    ids=["wrong", "no launch", "decoy", "undefined", "inductor"],
)
def test_the_others_get_what_they_deserve(
    engine: Engine, tmp_path: Path, source: str, status: Status
) -> None:
    verdict = judged(engine, source, tmp_path)
    assert verdict.status is status, (verdict.reason, verdict.details)


def test_the_example_gives_the_references_results() -> None:
    from tests.prompting.test_examples_run import compare

    compare("triton", "cuda")
