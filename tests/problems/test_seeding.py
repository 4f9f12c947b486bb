"""Drawing inputs from a seed: the same values as with torch.manual_seed, and nothing kept."""

from __future__ import annotations

from pathlib import Path

import torch

from kernelproof.problems import open_suite, read_problem
from kernelproof.verifier.contestant.encoding import tensors
from kernelproof.verifier.contestant.random_draws import seed_torch
from kernelproof.verifier.referee.inputs.problem import LoadedProblem

CPU = torch.device("cpu")
PROBLEMS = Path(__file__).parents[1] / "corpus" / "problems"


def test_a_seed_gives_what_torch_gives() -> None:
    seed_torch(7)
    ours = torch.rand(5)
    torch.manual_seed(7)
    assert torch.equal(ours, torch.rand(5))


def test_drawing_keeps_nothing_for_devices_that_are_not_used() -> None:
    problem = LoadedProblem(open_suite().find("level1/1"), "small")
    first = problem.draw(3, CPU)
    kept = [len(kind._queued_calls) for kind in (torch.cuda, torch.xpu, torch.mtia)]
    for _ in range(5):
        again = problem.draw(3, CPU)
    assert [len(kind._queued_calls) for kind in (torch.cuda, torch.xpu, torch.mtia)] == kept
    assert all(torch.equal(a, b) for a, b in zip(tensors(first), tensors(again), strict=True))


def test_a_forward_that_draws_is_noticed() -> None:
    for name, draws in (("dropout_softmax", True), ("linear_dropout_eval", False)):
        problem = LoadedProblem(read_problem(PROBLEMS / f"{name}.py"), "full")
        model = problem.construct(1, CPU)
        problem.run(model, problem.draw(2, CPU), 3)
        assert problem.draws_in_forward is draws
