"""Verdicts on a real GPU beyond those of the corpus. Run with `make test-gpu`."""

from __future__ import annotations

import textwrap
import time
from pathlib import Path

import pytest

from kernelproof.problems import open_suite
from kernelproof.types import Pace, Status, Verification, VerifySettings
from kernelproof.verifier.devices.discovery import require_gpu
from kernelproof.verifier.engine.engine import Engine

pytestmark = pytest.mark.gpu

FORWARD = """
import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, x):
{body}
"""


def judge(engine: Engine, problem_id: str, source: str, **changes: object) -> Verification:
    settings = VerifySettings.model_validate(
        {"backend": "cuda", "own_kernel": False, "measure_seconds": 5.0, **changes}
    )
    return engine.verify(source, open_suite().find(problem_id), settings)


def relu(body: str) -> str:
    return FORWARD.format(body=textwrap.indent(textwrap.dedent(body).strip(), " " * 8))


@pytest.mark.parametrize("problem_id", ["level1/5", "level2/1", "level2/2", "level1/2", "level3/1"])
def test_a_reference_is_right_and_as_fast_as_itself(engine: Engine, problem_id: str) -> None:
    problem = open_suite().find(problem_id)
    verdict = judge(engine, problem_id, f"{problem.source}\n\nModelNew = Model\n")
    assert verdict.status is Status.CORRECT, verdict.reason
    assert verdict.measurement is not None
    assert verdict.measurement.pace in (Pace.SAME, Pace.UNRESOLVED)
    assert verdict.environment is not None and verdict.environment.gpu is not None
    assert verdict.measurement.flush_bytes >= verdict.environment.gpu.l2_bytes
    (quiet,) = (check for check in verdict.checks if check.name == "undisturbed")
    assert (quiet.figures["power_capped"] > 0) is ("power cap" in quiet.seen)
    print(quiet.seen, quiet.figures)


def test_a_patched_event_clock_changes_nothing(engine: Engine) -> None:
    source = relu("""
        for _ in range(20):
            y = torch.relu(x)
        return y
    """)
    source += "\n\ntorch.cuda.Event.elapsed_time = lambda self, other: 0.001\n"
    verdict = judge(engine, "level1/1", source)
    assert verdict.status is Status.CORRECT, verdict.reason
    assert verdict.measurement is not None
    assert verdict.measurement.speedup < 0.1


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("import os; os._exit(0)", {Status.CRASH}),
        ("return torch.empty(1 << 40, device=x.device)", {Status.OUT_OF_MEMORY}),
        (
            "torch.zeros(4, device=x.device)[torch.tensor([9], device=x.device)]; return torch.relu(x)",
            {Status.RUNTIME_ERROR, Status.CRASH},
        ),
        ("while True: pass", {Status.TIMEOUT}),
    ],
)
def test_a_fault_is_its_own_and_the_next_candidate_is_unharmed(
    engine: Engine, body: str, expected: set[Status]
) -> None:
    assert judge(engine, "level1/1", relu(body), call_seconds=10.0).status in expected
    verdict = judge(engine, "level1/1", relu("return torch.relu(x)"), measure=False)
    assert verdict.status is Status.CORRECT, verdict.reason


def test_kernels_left_in_many_contexts_hold_nobody_up_for_long(engine: Engine) -> None:
    corpus = Path(__file__).parents[1] / "corpus"
    source = (corpus / "faults" / "cuda_kernels_left_in_contexts.py").read_text()
    how = {"own_kernel": True, "call_seconds": 1.0, "measure_seconds": 0.3}  # 63 s for a pair
    began = time.monotonic()
    verdict = judge(engine, "level1/1", source, **how)
    took = time.monotonic() - began
    assert verdict.status is Status.TIMEOUT, verdict.reason
    assert verdict.reason.startswith("the rounds of its timing were not over in 63 s, and without it ")
    assert took < 2 * 63 + 90  # two pairs, and what is alike for all candidates
    began = time.monotonic()
    after = judge(engine, "level1/1", relu("return torch.relu(x)"), measure_seconds=0.3)
    assert after.status is Status.CORRECT, after.reason
    print(f"{took:.0f} s, then {time.monotonic() - began:.0f} s: {verdict.reason}")


def test_a_call_that_takes_a_second_is_in_time(engine: Engine) -> None:
    verdict = judge(engine, "level1/1", relu("torch.cuda._sleep(1_700_000_000); return torch.relu(x)"))
    assert verdict.status is Status.CORRECT, verdict.reason
    assert verdict.measurement is not None and verdict.measurement.pace is Pace.SLOWER
    assert not any("not over in" in check.seen for check in verdict.checks)


def memory_at_rest() -> int:
    """Bytes in use of the memory of the GPU that is measured on: the least within some seconds, as processes
    end behind a verdict."""
    import pynvml

    pynvml.nvmlInit()
    handle = pynvml.nvmlDeviceGetHandleByUUID(require_gpu().uuid)
    least, until = pynvml.nvmlDeviceGetMemoryInfo(handle).used, time.monotonic() + 5
    while time.monotonic() < until:
        time.sleep(0.1)
        least = min(least, pynvml.nvmlDeviceGetMemoryInfo(handle).used)
    return int(least)


def test_device_memory_is_given_back(engine: Engine) -> None:
    problem = open_suite().find("level1/5")
    source = f"{problem.source}\n\nModelNew = Model\n"
    used = []
    for _ in range(3):
        assert judge(engine, "level1/5", source, measure_seconds=0.5).status is Status.CORRECT
        used.append(memory_at_rest())
    assert max(used) - min(used) < 1 << 30


def test_a_cuda_candidate_is_built_once(engine: Engine) -> None:
    source = Path(__file__).with_name("relu_candidate.py").read_text()
    first = judge(engine, "level1/1", source, own_kernel=True)
    assert first.status is Status.CORRECT, first.reason
    assert first.measurement is not None
    again = judge(engine, "level1/1", source, own_kernel=True, measure=False)
    assert again.status is Status.CORRECT
    assert all(build.cached for build in again.builds)
