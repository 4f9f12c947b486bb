"""The problems that travel with the program: all readable, all quick and fit at their small size."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator

import pytest
import torch

from kernelproof.problems import open_suite
from kernelproof.types import Problem
from kernelproof.verifier.contestant.encoding import tensors
from kernelproof.verifier.referee.fitness import examine
from kernelproof.verifier.referee.inputs.problem import LoadedProblem

CPU = torch.device("cpu")
PROBLEMS = open_suite().problems()


@pytest.fixture(autouse=True, scope="module")
def _one_thread() -> Iterator[None]:
    """Small sizes gain nothing from threads, which wait for each other on a busy machine."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


every_problem = pytest.mark.parametrize("problem", PROBLEMS, ids=lambda problem: problem.id)


def test_there_are_enough_on_every_level() -> None:
    assert open_suite().broken == []
    counts = Counter(problem.level for problem in PROBLEMS)
    assert counts[1] >= 16 and counts[2] >= 10 and counts[3] >= 7
    assert len(PROBLEMS) >= 34
    assert (
        len({problem.id for problem in PROBLEMS})
        == len({problem.name for problem in PROBLEMS})
        == len(PROBLEMS)
    )


def test_full_sizes_that_others_rely_on() -> None:
    full = {problem.name: problem.sizes["full"] for problem in PROBLEMS}
    assert full["argmin"] == {"BATCH": 128, "ROWS": 4096, "COLUMNS": 4095}
    assert tuple(full["conv2d_scale_min"].values()) == (64, 64, 128, 256, 256)
    assert tuple(full["conv3d_min_softmax"].values()) == (128, 3, 24, 24, 32, 32)


@every_problem
def test_has_a_summary_and_two_sizes_and_the_full_one_in_its_file(problem: Problem) -> None:
    assert problem.summary.endswith(".")
    assert set(problem.sizes) == {"full", "small"}
    assert problem.sizes["full"].keys() == problem.sizes["small"].keys()
    assert problem.sizes["full"] != problem.sizes["small"]
    namespace: dict[str, object] = {}
    exec(compile(problem.source, problem.id, "exec"), namespace)
    assert {name: namespace[name] for name in problem.sizes["full"]} == problem.sizes["full"]


@every_problem
def test_runs_in_less_than_a_second_at_small_size(problem: Problem) -> None:
    loaded = LoadedProblem(problem, "small")

    def once() -> float:
        started = time.process_time()
        inputs = loaded.draw(2, CPU)
        outputs = tensors(loaded.run(loaded.construct(1, CPU), inputs, 3))
        assert sum(output.numel() for output in outputs) >= 100
        kinds = {tensor.dtype for tensor in tensors(inputs)}
        assert kinds <= {torch.float32, torch.bfloat16, torch.int64, torch.bool}
        return time.process_time() - started

    assert min(once(), once()) < 1.0


@pytest.mark.few(14)
@every_problem
def test_is_fit_to_judge_candidates(problem: Problem) -> None:
    fitness = examine(problem, "small", CPU)
    assert fitness.ok, fitness.findings
