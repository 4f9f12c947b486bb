"""Whose kernels did the work, on a real GPU: what CUPTI sees, and that it leaves the process as it was."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
import torch

from kernelproof.problems import open_suite
from kernelproof.types import Launch, Origin, Status, Verification, VerifySettings
from kernelproof.verifier.contestant.profiling import Watched
from kernelproof.verifier.engine.engine import Engine
from tests.referee.corpus import members

pytestmark = pytest.mark.gpu

HERE = Path(__file__).parent
HONEST = HERE.parent / "corpus" / "honest"
EXTENSION = (HERE / "relu_candidate.py").read_text().partition("class ModelNew")[0] + "import torch\n\n\n"
"""One extension for all: it is compiled once."""

USED = "class ModelNew(nn.Module):\n    def forward(self, x):\n        return extension.relu_forward(x)\n"
UNUSED = "class ModelNew(nn.Module):\n    def forward(self, x):\n        return torch.relu(x)\n"
FALLBACK = """
class ModelNew(nn.Module):
    def forward(self, x):
        try:
            return extension.relu_forward(x.cpu(), "no such parameter")
        except TypeError:
            return torch.relu(x)
"""
GRAPH = """
class ModelNew(nn.Module):
    graph = None

    def forward(self, x):
        if self.graph is None or self.x.shape != x.shape:
            self.x = x.clone()
            extension.relu_forward(self.x)
            torch.cuda.synchronize()
            self.graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(self.graph):
                self.y = extension.relu_forward(self.x)
        self.x.copy_(x)
        self.graph.replay()
        return self.y.clone()
"""
EPILOGUE = """
class ModelNew(nn.Module):
    def forward(self, a, b):
        product = a @ b
        positive = extension.relu_forward(product)
        return positive - extension.relu_forward(-product)
"""


def judge(engine: Engine, problem_id: str, source: str, **changes: object) -> Verification:
    plain = {"backend": "cuda", "measure": False, "trials": 1, "measure_seconds": 2.0}
    return engine.verify(
        source, open_suite().find(problem_id), VerifySettings.model_validate(plain | changes)
    )


def launches(verdict: Verification, *origins: Origin) -> list[Launch]:
    assert verdict.kernels is not None
    assert verdict.kernels.trouble == ""
    return [launch for launch in verdict.kernels.launches if launch.origin in origins]


def test_a_kernel_of_its_own_is_seen_and_timed(engine: Engine) -> None:
    verdict = judge(engine, "level1/1", EXTENSION + USED, purity="own-compute")
    assert verdict.status is Status.CORRECT, verdict.reason
    (launch,) = launches(verdict, Origin.OWN, Origin.JIT)
    assert launch.origin is Origin.OWN
    assert launch.name.startswith("relu_kernel")
    assert launch.count == 1
    assert launch.ms is not None and launch.ms > 0
    assert verdict.kernels is not None and verdict.kernels.own_share == 1.0
    print(f"\nthe traced call took {verdict.stage_seconds['kernels']:.3f} s")


@pytest.mark.parametrize("body", [UNUSED, FALLBACK], ids=["never called", "torch steps in"])
def test_an_extension_that_does_nothing_is_not_enough(engine: Engine, body: str) -> None:
    verdict = judge(engine, "level1/1", EXTENSION + body)
    assert verdict.status is Status.NO_CUSTOM_KERNEL, verdict.reason
    assert "at::native" in verdict.reason
    assert launches(verdict, Origin.OWN, Origin.JIT) == []
    # An error of pybind's quotes the tensors, which computes too.
    assert verdict.kernels is not None and "aten.relu" in verdict.kernels.operators


def test_a_kernel_compiled_while_it_runs_counts(engine: Engine) -> None:
    source = (HONEST / "cuda_relu_nvrtc.py").read_text()
    verdict = judge(engine, "level1/1", source, purity="own-compute")
    assert verdict.status is Status.CORRECT, verdict.reason
    assert [launch.origin for launch in launches(verdict, Origin.OWN, Origin.JIT)] == [Origin.JIT]


@pytest.mark.parametrize(
    "name", ["cuda_relu_own_header", "cuda_softmax_loaded_from_a_tree", "cuda_gelu_by_setuptools"]
)
def test_what_is_built_from_files_is_its_own(name: str, engine: Engine) -> None:
    member = next(m for m in members("cuda") if m.name == name)
    settings = member.settings.model_copy(update={"measure": False, "purity": "own-compute"})
    verdict = engine.verify(member.source, member.problem, settings)
    assert verdict.status is Status.CORRECT, verdict.reason
    assert launches(verdict, Origin.OWN) != [] and launches(verdict, Origin.JIT) == []


def test_a_header_library_compiled_into_the_extension_is_its_own(engine: Engine) -> None:
    member = next(m for m in members("cuda") if m.name == "cuda_scaled_error_cub")
    settings = member.settings.model_copy(update={"measure": False})
    verdict = engine.verify(member.source, member.problem, settings)
    assert verdict.status is Status.CORRECT, verdict.reason
    assert launches(verdict, Origin.JIT, Origin.LIBRARY) == []


@pytest.mark.parametrize("name", ["cuda_linear_library_epilogue", "cuda_small_epilogue_of_a_large_product"])
@pytest.mark.parametrize("measure", [False, True])
def test_a_library_beside_an_own_kernel_is_a_matter_of_purity(
    engine: Engine, name: str, measure: bool
) -> None:
    member = next(m for m in members("cuda") if m.name == name)
    settings = member.settings.model_copy(update={"measure": measure, "trials": 1})
    verdict = engine.verify(member.source, member.problem, settings)
    assert verdict.status is Status.CORRECT, verdict.reason
    assert launches(verdict, Origin.LIBRARY) != []
    assert launches(verdict, Origin.JIT, Origin.UNKNOWN) == []
    kernels = verdict.kernels
    assert kernels is not None and kernels.own_share is not None and kernels.replaced_share is not None
    assert 0 < kernels.own_share < 1
    assert kernels.replaced_outside_products == 1
    print(f"\n{name}: own {kernels.own_share:.2%}, replaced {kernels.replaced_share:.2%}")
    strict = engine.verify(
        member.source, member.problem, settings.model_copy(update={"purity": "own-compute"})
    )
    assert strict.status is Status.NO_CUSTOM_KERNEL
    assert "aten.addmm" in strict.reason or "aten.mm" in strict.reason


@pytest.mark.parametrize("measure", [False, True])
def test_own_kernels_that_replace_nothing_are_not_enough(engine: Engine, measure: bool) -> None:
    verdict = judge(engine, "level1/4", EXTENSION + EPILOGUE, measure=measure)
    assert verdict.status is Status.NO_CUSTOM_KERNEL, verdict.reason
    assert "replace nothing" in verdict.reason
    assert verdict.kernels is not None and verdict.kernels.replaced_share == 0
    assert verdict.measurement is None


def test_what_torch_compiles_when_it_runs_is_told_by_who_launched_it() -> None:
    """Operators and CUDA's own functions are numbered apart; who mixes them up loses the operator."""
    x = torch.rand(512, 96, device="cuda:0")
    watched = Watched(torch.device("cuda:0"))
    for _ in range(2):
        with watched:
            torch.prod(x, dim=-1)
    lines = {(kind, name) for kind, name, _, _ in watched.report["device"]}
    assert {kind for kind, _ in lines} == {"kernel of torch"}, lines
    assert [line[:2] for line in watched.report["spent"]] == [["operator", "aten.prod"]]


def test_kernels_in_a_graph_are_seen_and_the_graph_still_works_when_timed(engine: Engine) -> None:
    verdict = judge(engine, "level1/1", EXTENSION + GRAPH, measure=True)
    assert verdict.status is Status.CORRECT, verdict.reason
    assert [launch.name.partition("(")[0] for launch in launches(verdict, Origin.OWN)] == ["relu_kernel"]
    assert verdict.measurement is not None


@pytest.mark.parametrize(
    "problem_id", ["level1/2", "level1/4", "level1/8", "level2/1", "level2/2", "level3/4"]
)
def test_no_kernel_of_torch_is_taken_for_the_candidates(engine: Engine, problem_id: str) -> None:
    source = open_suite().find(problem_id).source + "\n\nModelNew = Model\n"
    verdict = judge(engine, problem_id, source)
    assert verdict.status is Status.NO_CUSTOM_KERNEL, verdict.reason
    assert [launch.name for launch in launches(verdict, Origin.OWN, Origin.JIT, Origin.INDUCTOR)] == []


def test_what_the_loop_launches_around_timed_calls_is_not_the_candidates(engine: Engine) -> None:
    """The record is of the block that was watched."""
    verdict = judge(engine, "level1/1", EXTENSION + USED, measure=True, purity="own-compute")
    assert verdict.status is Status.CORRECT, verdict.reason
    assert "own_kernel again" in {check.name for check in verdict.checks}
    (launch,) = launches(verdict, Origin.OWN, Origin.JIT)
    assert launch.name.startswith("relu_kernel") and launch.count == 1
    assert launches(verdict, Origin.UNKNOWN, Origin.LIBRARY) == []


def test_calls_that_take_memory_are_counted(engine: Engine) -> None:
    member = next(m for m in members("cuda") if m.name == "cuda_histogram_stream_memory")
    settings = member.settings.model_copy(update={"measure": False})
    verdict = engine.verify(member.source, member.problem, settings)
    assert verdict.status is Status.CORRECT, verdict.reason
    assert verdict.kernels is not None
    assert {"cudaMallocAsync", "cudaFreeAsync"} <= verdict.kernels.allocations.keys()


def test_copies_and_fills_are_no_compute(engine: Engine) -> None:
    body = """
class ModelNew(nn.Module):
    def forward(self, x):
        x = x.t().contiguous().double().float().t()
        torch.zeros(7, device="cuda"), torch.full((5, 3), 2.0, device="cuda"), torch.arange(9, device="cuda")
        return extension.relu_forward(x.clone())
"""
    verdict = judge(engine, "level1/1", EXTENSION + body, purity="own-compute")
    assert verdict.status is Status.CORRECT, verdict.reason
    assert launches(verdict, Origin.LIBRARY) == [], verdict.reason
    assert launches(verdict, Origin.COPY) != []


def test_watching_leaves_the_process_as_it_was() -> None:
    device = torch.device("cuda:0")
    x = torch.randn(64, 64, device=device)

    def launch_us() -> float:
        torch.cuda.synchronize()
        began = time.perf_counter()
        for _ in range(2000):
            torch.relu(x)
        torch.cuda.synchronize()
        return (time.perf_counter() - began) / 2000 * 1e6

    launch_us()
    figures = [launch_us(), launch_us()]
    reports = []
    for _ in range(2):
        began = time.perf_counter()
        with Watched(device) as watched:
            y = torch.relu(x)
        assert torch.equal(y, torch.relu(x))
        figures += [(time.perf_counter() - began) * 1e6, launch_us(), launch_us()]
        reports.append(watched.report)
    print("\nus a launch, before, [a watched call, after] twice: " + " ".join(f"{f:.1f}" for f in figures))
    assert not torch.autograd._profiler_enabled()
    first, second = ([line[:3] for line in report["device"]] for report in reports)
    assert first == second != []
    assert reports[1]["trouble"] == ""
