"""compute-sanitizer finds planted faults of kernels on a real GPU, and accuses no honest twin."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from kernelproof.choices import Flag
from kernelproof.problems import open_suite
from kernelproof.types import CheckOutcome, VerifySettings
from kernelproof.types.verification import VerifyRequest
from kernelproof.verifier.engine.engine import Engine, ended_early
from kernelproof.verifier.status_rules import Cause
from tests.cli import material

pytestmark = pytest.mark.gpu

CUDA = '''
import torch
from torch import nn
from torch.utils.cpp_extension import load_inline

SOURCE = r"""
__global__ void relu(const float* x, float* y, int n) {
    __shared__ float part[256];
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    part[threadIdx.x] = @condition@ ? x[i] : 0.0f;
    @barrier@
    const float other = part[255 - threadIdx.x] * 0.0f;
    if (@condition@) y[i] = (x[i] > 0.0f ? x[i] : 0.0f) + other;
}
torch::Tensor run(torch::Tensor x) {
    auto y = torch::empty_like(x);
    const int n = x.numel();
    relu<<<n / 256 + 1, 256>>>(x.data_ptr<float>(), y.data_ptr<float>(), n);
    return y;
}
"""
extension = load_inline("relu_@name@", ["torch::Tensor run(torch::Tensor x);"], [SOURCE], functions=["run"])


class ModelNew(nn.Module):
    def forward(self, x):
        return extension.run(x)
'''
TRITON = """
import torch
import triton
import triton.language as tl
from torch import nn


@triton.jit
def relu(x, y, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    value = tl.load(x + i, mask=i < n, other=0.0)
    tl.store(y + i, tl.maximum(value, 0.0)@mask@)


class ModelNew(nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        relu[(x.numel() // 1024 + 1,)](x, y, x.numel(), BLOCK=1024)
        return y
"""


def cuda(name: str, condition: str = "i < n", barrier: str = "__syncthreads();") -> str:
    source = CUDA.replace("@name@", name).replace("@condition@", condition)
    return source.replace("@barrier@", barrier)


@pytest.fixture(scope="module")
def engine(cache: Path) -> Iterator[Engine]:
    with Engine(cache) as engine:
        yield engine


@pytest.mark.parametrize(
    ("backend", "source", "flags"),
    [
        ("cuda", cuda("honest"), set()),
        ("cuda", cuda("beyond", condition="i < n + 64"), {Flag.OUT_OF_BOUNDS_READ}),
        ("cuda", cuda("racing", barrier=""), {Flag.RACE}),
        ("triton", TRITON.replace("@mask@", ", mask=i < n"), set()),
        ("triton", TRITON.replace("@mask@", ""), {Flag.OUT_OF_BOUNDS_WRITE}),
    ],
    ids=["honest", "beyond", "racing", "triton-honest", "triton-unmasked"],
)
def test_a_planted_fault_is_found_and_an_honest_twin_is_clean(
    engine: Engine, tmp_path: Path, backend: str, source: str, flags: set[Flag]
) -> None:
    problem = open_suite(material.problems(tmp_path / "problems")).find("relu")
    settings = VerifySettings(backend=backend, measure=False)
    request = VerifyRequest(problem=problem, source=source, settings=settings, device="cuda:0")
    before = ended_early(request, Cause.NOTHING_FAILED.ended("judged before"))
    verification = engine.sanitize(source, problem, before)
    seen = {check.name: check.seen for check in verification.checks}
    assert len(seen) == 4 and verification.status is before.status
    outcomes = {check.outcome for check in verification.checks}
    assert outcomes <= {CheckOutcome.PASS, CheckOutcome.FAIL}, seen
    # A thread ends at its first access beyond a buffer: whether one also wrote there is chance. And what was
    # read there was never written either, which is another tool's finding.
    also = {Flag.UNINITIALISED} | ({Flag.OUT_OF_BOUNDS_WRITE} if Flag.OUT_OF_BOUNDS_READ in flags else set())
    assert flags <= set(verification.flags) <= (flags | also if flags else set()), seen
